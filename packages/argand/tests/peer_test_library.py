"""Custom operators do what the peer's do: results, gradients and what is written, eagerly and compiled."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Optional

import numpy as np
import pytest

Program = Callable[..., Any]


def defined(T: Any, name: str, mutates: Any, schema: str | None = None) -> Any:
    """A decorator: annotations name `T.Tensor` and `T.dtype`, which only a call knows."""

    def decorate(fn: Any) -> Any:
        types = {"Tensor": T.Tensor, "dtype": T.dtype, "device": T.device}
        fn.__annotations__ = {
            k: eval(v, globals(), types) if isinstance(v, str) else v
            for k, v in fn.__annotations__.items()
        }
        return T.library.custom_op(f"peer::{name}", fn, mutates_args=mutates, schema=schema)

    return decorate


def sine(T: Any) -> Program:
    @defined(T, "sine", ())
    def op(x: Tensor) -> Tensor:  # type: ignore[name-defined]  # noqa: F821
        return T.from_numpy(np.sin(x.detach().numpy()))

    op.register_fake(lambda x: T.empty_like(x))

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    op.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=setup)
    return lambda x, y: op(x.cos()) * T.ops.peer.sine(y) + T.ops.peer.sine.default(x)


def options(T: Any) -> Program:
    @defined(T, "options", ())
    def op(
        x: Tensor, mode: str = "sum", flip: bool = False, kind: dtype = T.float32, n: Optional[int] = None,  # type: ignore[name-defined]  # noqa: F821, UP045
        *, eps: float = 0.5, where: Optional[device] = None,  # type: ignore[name-defined]  # noqa: F821, UP045
    ) -> Tensor:  # fmt: skip  # type: ignore[name-defined]  # noqa: F821
        y = x.to(kind) if kind != x.dtype else x.clone()
        return (y.flip(0) if flip else y) * (2 if mode == "double" else 1) + eps + (n or 0)

    @op.register_fake
    def _(x, mode="sum", flip=False, kind=T.float32, n=None, *, eps=0.5, where=None):
        return T.empty_like(x, dtype=kind)

    def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        assert len(inputs) == 5 and sorted(keyword_only_inputs) == ["eps", "where"]
        ctx.mode, ctx.flip, ctx.kind = inputs[1], inputs[2], inputs[0].dtype

    def backward(ctx: Any, g: Any) -> Any:
        g = g.to(ctx.kind).flip(0) if ctx.flip else g.to(ctx.kind)
        return g * (2 if ctx.mode == "double" else 1), None, None, None, None

    op.register_autograd(backward, setup_context=setup)
    return lambda x, y: (
        op(x),
        op(y, "double", True, T.float64, 3),
        op(x, kind=T.float64, eps=1.5, where=T.device("cpu")),
        op(y, flip=True, mode="double"),
    )


def lists(T: Any) -> Program:
    @defined(T, "lists", ())
    def op(x: Tensor, ys: list[Tensor], weights: list[float]) -> tuple[Tensor, list[Tensor]]:  # type: ignore[name-defined]  # noqa: F821
        return x * 2, [y * w for y, w in zip(ys, weights, strict=True)]

    op.register_fake(lambda x, ys, weights: (T.empty_like(x), [T.empty_like(y) for y in ys]))

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.weights = inputs[2]
        assert isinstance(output, tuple) and isinstance(output[1], list)

    def backward(ctx: Any, g: Any, gs: Any) -> Any:
        assert isinstance(gs, list) and ctx.needs_input_grad[1] == [True] * len(gs)
        return g * 2, [one * w for one, w in zip(gs, ctx.weights, strict=True)], None

    op.register_autograd(backward, setup_context=setup)

    def program(x: Any, y: Any) -> Any:
        first, several = op(x, [y, x.sin(), y * x], [1.0, 2.0, 3.0])
        return first.relu(), several[0] + 1, several[1] * several[2]

    return program


def parts(T: Any) -> Program:
    @defined(T, "parts", ())
    def op(x: Tensor, n: int) -> list[Tensor]:  # type: ignore[name-defined]  # noqa: F821
        return [x[i] * 2 for i in range(n)]

    op.register_fake(lambda x, n: [T.empty(x.shape[1]) for _ in range(n)])

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.shape, ctx.n = inputs[0].shape, inputs[1]

    def backward(ctx: Any, grads: Any) -> Any:
        rows = T.stack(grads) * 2
        return T.cat([rows, rows.new_zeros(ctx.shape[0] - ctx.n, ctx.shape[1])]), None

    op.register_autograd(backward, setup_context=setup)
    return lambda x, y: [p.sin() for p in op(x + y, 1)] + op(y, 2)


def factories(T: Any) -> Program:
    @defined(T, "factories", ())
    def op(x: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[name-defined]  # noqa: F821
        return T.full((n, x.shape[0]), 2.0), x.new_ones(2, x.size(1)), T.arange(x.numel())

    op.register_fake(
        lambda x, n: (T.empty(n, x.shape[0]), T.zeros(2, x.size(1)), T.zeros(x.numel(), dtype=T.int64))
    )  # fmt: skip
    return lambda x, y: [p + 1 for p in op(x.detach() + y.detach(), 4)]


def writes(T: Any) -> Program:
    @defined(T, "writes", {"a", "bs"})
    def op(a: Tensor, bs: list[Tensor], k: int = 3) -> Tensor:  # type: ignore[name-defined]  # noqa: F821
        a.add_(k)
        for b in bs:
            b.mul_(2)
        return a + 1

    op.register_fake(lambda a, bs, k=3: T.empty_like(a))

    @defined(T, "doubles", {"x"})
    def doubles(x: Tensor) -> None:  # type: ignore[name-defined]  # noqa: F821
        x.mul_(2)

    def program(x: Any, y: Any) -> Any:
        a, b = x.detach() * 1, y.detach() * 1
        found = op(a, [b, b[0].clone()]) + b
        doubles(a[0])
        return found, a, b

    return program


def named(T: Any) -> Program:
    @defined(T, "named", (), "(Tensor input, int times=3) -> Tensor")
    def op(a, b=3):
        return a * b

    op.register_fake(lambda a, b=3: T.empty_like(a))
    return lambda x, y: op(input=x.detach(), times=5) + op(y.detach())


def defined_apart(T: Any) -> Program:
    if not hasattr(T.ops, "peer_apart") or not hasattr(T.ops.peer_apart, "sine"):
        T.library.define("peer_apart::sine", "(Tensor x) -> Tensor")
        T.library.impl(
            "peer_apart::sine", "cpu", lambda x: T.from_numpy(np.sin(x.detach().numpy()))
        )
        T.library.register_fake("peer_apart::sine", lambda x: T.empty_like(x))
        T.library.register_autograd(
            "peer_apart::sine",
            lambda ctx, g: g * ctx.x.cos(),
            setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0]),
        )
        defined_apart.library = found = T.library.Library("peer_apart", "FRAGMENT")  # type: ignore[attr-defined]
        found.define("twice(Tensor x) -> Tensor")
        found.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    return lambda x, y: T.ops.peer_apart.twice(T.ops.peer_apart.sine(x)) + y


PROGRAMS = (sine, options, lists, parts, factories, writes, named, defined_apart)


def flat(results: Any) -> list[Any]:
    return (
        [t for r in results for t in flat(r)] if isinstance(results, (list, tuple)) else [results]
    )


def outcome(T: Any, program: Program, wrap: Callable[[Program], Program]) -> list[np.ndarray]:
    run, found = wrap(program), []
    for shape in ((3, 4), (5, 2)):
        inputs = [
            T.linspace(start, 2.0, shape[0] * shape[1]).reshape(shape).requires_grad_()
            for start in (-1.0, 0.5)
        ]
        results = flat(run(*inputs))
        differentiable = [t for t in results if t.requires_grad]
        if differentiable:
            sum((t * t).sum().double() for t in differentiable).backward()
            results += [x.grad for x in inputs]
        found += [t.detach().numpy() for t in results]
    return found


@pytest.mark.parametrize("name", ["argand", "torch"])
def test_the_names_of_an_operator(name: str) -> None:
    T = importlib.import_module(name)
    sine(T)
    assert not hasattr(T.ops.peer, "nothing")
    assert repr(T.library.infer_schema).startswith("<function")
    with pytest.raises(RuntimeError):
        T.library.register_autograd("peer::writes", lambda ctx, g: g) if writes(T) else None


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(make: Callable[[Any], Program]) -> None:
    import torch

    import argand

    expected = outcome(torch, make(torch), lambda f: f)
    mine = make(argand)
    for dynamic in (None, False, True):
        found = outcome(
            argand,
            mine,
            (lambda f: f) if dynamic is None else lambda f: argand.compile(f, fullgraph=True, dynamic=dynamic),  # noqa: B023
        )  # fmt: skip
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["argand", "torch"])
def test_opcheck(name: str) -> None:
    T = importlib.import_module(name)
    sine(T)
    x = T.arange(3.0, requires_grad=True)
    found = T.library.opcheck(T.ops.peer.sine.default, (x,))
    assert found == dict.fromkeys(
        (
            "test_schema",
            "test_autograd_registration",
            "test_faketensor",
            "test_aot_dispatch_dynamic",
        ),
        "SUCCESS",
    )

    @defined(T, "wrong_shape", ())
    def wrong_shape(x: Tensor) -> Tensor:  # type: ignore[name-defined]  # noqa: F821
        return x.clone()

    wrong_shape.register_fake(lambda x: x.new_empty(7))

    @defined(T, "writes_secretly", ())
    def writes_secretly(x: Tensor) -> Tensor:  # type: ignore[name-defined]  # noqa: F821
        x.detach().add_(1)
        return x.clone()

    writes_secretly.register_fake(lambda x: T.empty_like(x))
    for op, test in ((wrong_shape, "test_faketensor"), (writes_secretly, "test_schema")):
        found = T.library.opcheck(op, (T.ones(3),), test_utils=test, raise_exception=False)
        assert isinstance(found[test], Exception)
        with pytest.raises(Exception):  # noqa: B017
            T.library.opcheck(op, (T.ones(3),), test_utils=test)
