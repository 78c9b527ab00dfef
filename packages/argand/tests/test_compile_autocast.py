"""Autocast inside and outside of compiled functions: the same dtypes, values and gradients as plain runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

import argand
from argand import nn
from argand_autograd.amp import custom_bwd, custom_fwd
from argand_c10 import metrics

BACKENDS = ["eager", "aot_eager", "inductor"]
F = nn.functional


def _numbers(*shape: int) -> argand.Tensor:
    count = 1
    for n in shape:
        count *= n
    return ((argand.arange(count) * 7919 % 83).float() / 41 - 1).reshape(shape).clone()


def _inside(x: argand.Tensor, w: argand.Tensor) -> Any:
    with argand.autocast("cpu", dtype=argand.bfloat16):
        y = argand.mm(x, w)
        z = argand.matmul(y, w).relu()
        with argand.autocast("cpu", enabled=False):
            q = argand.mm(z.float(), w)
        r = argand.nn.functional.mse_loss(y, z)
    return y, z, q, r, argand.mm(x, w)


def _outside(x: argand.Tensor, w: argand.Tensor) -> Any:
    y = argand.mm(x, w)
    with argand.autocast("cpu", enabled=False):
        q = argand.mm(x, w)
    loss = nn.functional.cross_entropy(y, argand.tensor([0, 1, 2, 3]))
    return y, q, y + 1, loss


def _broken(x: argand.Tensor, w: argand.Tensor) -> Any:
    with argand.autocast("cpu", dtype=argand.float16):
        y = argand.mm(x, w)
        argand._dynamo.graph_break()
        z = argand.mm(x, y.t())
    return y, z, argand.mm(x, w)


@argand.autocast("cpu", dtype=argand.bfloat16)
def _decorated(x: argand.Tensor, w: argand.Tensor) -> Any:
    return (argand.nn.functional.linear(x, w.t(), w[0]),)


def _run(function: Callable[..., Any], region: Any) -> list[Any]:
    x, w = _numbers(4, 8), _numbers(8, 8).requires_grad_()
    with region():
        results = list(function(x, w))
    total = argand.zeros(())
    for r in results:
        total = total + r.float().sum()
    total.backward()
    return [*[r.detach() for r in results], w.grad]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("function", "region"),
    [
        (_inside, nullcontext),
        (_outside, lambda: argand.autocast("cpu")),
        (_outside, lambda: argand.autocast("cpu", dtype=argand.float16)),
        (_broken, nullcontext),
        (_decorated, nullcontext),
    ],
)
def test_equals_plain(function: Any, region: Any, backend: str) -> None:
    compiled = argand.compile(function, backend=backend)
    for _ in range(2):
        want, got = _run(function, region), _run(compiled, region)
        assert [t.dtype for t in got] == [t.dtype for t in want]
        for a, b in zip(got, want, strict=True):
            assert argand.allclose(a.float(), b.float(), rtol=2e-2, atol=2e-2)
            if backend != "inductor" and function is not _broken:
                assert argand.equal(a, b)
    assert not argand.is_autocast_enabled("cpu")


def test_state_is_guarded() -> None:
    seen = []

    def count(gm: Any, inputs: Any) -> Any:
        seen.append(gm)
        return gm.forward

    compiled = argand.compile(lambda x: argand.mm(x, x), backend=count)
    x = _numbers(3, 3)
    assert compiled(x).dtype is argand.float32
    with argand.autocast("cpu"):
        assert compiled(x).dtype is argand.bfloat16
    with argand.autocast("cpu", dtype=argand.float16):
        assert compiled(x).dtype is argand.float16
        with argand.autocast("cpu", enabled=False):
            assert compiled(x).dtype is argand.float32
    assert compiled(x).dtype is argand.float32
    with argand.autocast("cpu"):
        assert compiled(x).dtype is argand.bfloat16
    assert len(seen) <= 4  # once a state


def test_casts_are_in_the_graph_once_a_weight() -> None:
    graphs = []

    def keep(gm: Any, inputs: Any) -> Any:
        graphs.append(gm)
        return gm.forward

    def twice(x: argand.Tensor, w: argand.Tensor) -> Any:
        with argand.autocast("cpu"):
            return argand.mm(argand.mm(x, w), w)

    argand.compile(twice, backend=keep)(_numbers(4, 4), _numbers(4, 4).requires_grad_())
    names = [getattr(n.target, "name", "") for n in graphs[0].graph.nodes]
    assert names.count("_to_copy") == 2 and names.count("mm") == 2


def test_one_graph_and_queries() -> None:
    def function(x: argand.Tensor) -> Any:
        with argand.autocast("cpu", dtype=argand.float16):
            inside = argand.is_autocast_enabled("cpu"), argand.get_autocast_dtype("cpu")
            y = argand.mm(x, x)
        return y, inside, argand.is_autocast_enabled("cpu")

    compiled = argand.compile(function, backend="eager", fullgraph=True)
    before = metrics.counters().get("graphs", 0)
    y, inside, after = compiled(_numbers(3, 3))
    assert y.dtype is argand.float16 and inside == (True, argand.float16) and after is False
    assert metrics.counters()["graphs"] == before + 1


def test_exceptions_leave_no_region() -> None:
    def function(x: argand.Tensor) -> Any:
        with argand.autocast("cpu"):
            y = argand.mm(x, x)
            if y.shape[0] == 3:
                raise KeyError("three")
        return y

    compiled = argand.compile(function, backend="eager")
    with pytest.raises(KeyError):
        compiled(_numbers(3, 3))
    assert not argand.is_autocast_enabled("cpu")
    assert compiled(_numbers(2, 2)).dtype is argand.bfloat16


class _Product(argand.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx: Any, a: argand.Tensor) -> argand.Tensor:
        ctx.save_for_backward(a)
        return argand.mm(a, a)

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx: Any, g: argand.Tensor) -> argand.Tensor:
        (a,) = ctx.saved_tensors
        return argand.mm(g, a.t()).float()


@pytest.mark.parametrize("backend", BACKENDS)
def test_custom_functions(backend: str) -> None:
    def function(a: argand.Tensor) -> Any:
        with argand.autocast("cpu"):
            return _Product.apply(a * 2)

    def run(f: Any) -> Any:
        a = _numbers(3, 3).requires_grad_()
        y = f(a)
        y.float().sum().backward()
        return y.detach(), a.grad

    want, got = run(function), run(argand.compile(function, backend=backend))
    for a, b in zip(got, want, strict=True):
        assert a.dtype is b.dtype and argand.allclose(a.float(), b.float(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("norm", "sizes"),
    [
        (lambda x, w, b: F.layer_norm(x, [8], w, b), (4, 8)),
        (lambda x, w, b: F.rms_norm(x, [8], w) + b, (4, 8)),
        (lambda x, w, b: F.group_norm(x, 2, w, b), (4, 8, 3)),
        (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (4, 8)),
        (lambda x, w, b: F.instance_norm(x, None, None, w, b), (4, 8, 3)),
    ],
    ids=["layer_norm", "rms_norm", "group_norm", "batch_norm", "instance_norm"],
)
def test_norms_of_narrow_inputs_with_wide_weights(norm: Any, sizes: Any, backend: str) -> None:
    """What a linear layer makes in an autocast region goes into a normalisation whose weights stay float32."""

    def results(call: Any) -> list[Any]:
        leaves = [_numbers(*sizes).bfloat16(), _numbers(8), _numbers(8)]
        leaves = [t.requires_grad_() for t in leaves]
        y = call(*leaves)
        y.float().pow(2).sum().backward()
        return [y.detach(), *[t.grad for t in leaves]]

    want, got = results(norm), results(argand.compile(norm, backend=backend))
    assert [t.dtype for t in got] == [t.dtype for t in want]
    for a, b in zip(got, want, strict=True):
        assert argand.allclose(a.float(), b.float(), rtol=2e-2, atol=2e-2)
