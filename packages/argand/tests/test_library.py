"""Operators of users: eager, differentiated and compiled they run as the function that they were made of."""

from __future__ import annotations

import numpy as np
import pytest

import argand as torch
from argand import Tensor
from argand.library import custom_op, infer_schema


@custom_op("library_test::scaled", mutates_args=())
def scaled(x: Tensor, factor: float = 2.0, *, shift: float = 0.0) -> Tensor:
    """On arrays."""
    return torch.from_numpy(x.numpy() * np.float32(factor) + np.float32(shift))


def keep(ctx, inputs, keyword_only_inputs, output):
    x, ctx.factor = inputs
    assert output.shape == x.shape and set(keyword_only_inputs) == {"shift"}


scaled.register_fake(lambda x, factor=2.0, *, shift=0.0: torch.empty_like(x))
scaled.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=keep)


@custom_op("library_test::parts", mutates_args=())
def parts(x: Tensor, n: int) -> tuple[Tensor, Tensor]:
    return x * n, x.double().sum(0)


@torch.library.register_fake("library_test::parts")
def _(x, n):
    return torch.empty_like(x), x.new_empty(x.shape[1:], dtype=torch.float64)


@custom_op("library_test::fill", mutates_args={"x"})
def fill(x: Tensor, value: float) -> Tensor:
    x.numpy().fill(value)
    return x + 1


fill.register_fake(lambda x, value: torch.empty_like(x))


def test_calls():
    x = torch.arange(3.0)
    assert scaled(x).tolist() == [0, 2, 4] and scaled(x, shift=1.0, factor=3.0).tolist() == [
        1,
        4,
        7,
    ]
    assert (
        scaled.__name__ == "scaled"
        and scaled.__doc__ == "On arrays."
        and "library_test::scaled" in repr(scaled)
    )
    assert scaled(torch.empty(2, 3, device="meta")).shape == (2, 3)
    with pytest.raises(TypeError):
        scaled(x, other=1)
    with pytest.raises(TypeError):
        scaled()


def test_gradients():
    x = torch.arange(3.0, requires_grad=True)
    scaled(x.sin(), 3.0, shift=1.0).sum().backward()
    assert torch.allclose(x.grad, 3 * x.detach().cos())
    product, total = parts(x, 2)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        (product.sum() + total.sum()).backward()
    with pytest.raises(RuntimeError, match="non-functional operator"):
        fill.register_autograd(lambda ctx, grad: grad)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(dynamic):
    def program(x):
        product, total = parts(x.detach() + 1, 3)
        written = product * 2
        after = fill(written, 0.5)
        return (scaled(x.sin(), 3.0, shift=1.0) * product).relu() + total.float() + written + after

    compiled = torch.compile(program, fullgraph=True, dynamic=dynamic)
    for shape in ((2, 3), (5, 4)):
        x, y = (
            torch.arange(float(np.prod(shape))).reshape(shape).requires_grad_() for _ in range(2)
        )
        found, expected = compiled(x), program(y)
        assert torch.equal(found, expected)
        found.sum().backward()
        expected.sum().backward()
        assert torch.equal(x.grad, y.grad)


def test_writing_where_gradients_are_recorded():
    leaf = torch.ones(2, requires_grad=True)
    after = fill(leaf, 3.0)
    assert leaf.tolist() == [3, 3] and after.tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        after.sum().backward()

    @custom_op("library_test::add_one", mutates_args={"x"})
    def add_one(x: Tensor) -> None:
        x.add_(1)

    x = torch.ones(2, requires_grad=True)
    inner = x * 3
    add_one(inner)
    assert inner.tolist() == [4, 4]
    inner.sum().backward()
    assert x.grad.tolist() == [3, 3]
    plain = torch.ones(2)
    torch.compile(lambda x: add_one(x), fullgraph=True)(plain)  # needs no fake
    assert plain.tolist() == [2, 2]


def test_without_a_fake():
    @custom_op("library_test::bare", mutates_args=())
    def bare(x: Tensor) -> Tensor:
        return x.clone()

    assert bare(torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="register_fake"):
        bare(torch.ones(2, device="meta"))
    with pytest.raises(Exception, match="register_fake"):
        torch.compile(lambda x: bare(x) + 1, fullgraph=True)(torch.ones(2))


def test_what_is_refused():
    @custom_op("library_test::same", mutates_args=(), schema="(Tensor x) -> Tensor")
    def same(x):
        return x[:1]

    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(torch.ones(2))
    for name in ("scaled", "::x", "a::", "a::b.c"):
        with pytest.raises(ValueError, match="namespace"):
            custom_op(name, lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="library_test::missing"):
        torch.library.register_kernel("library_test::missing", "cpu")


def everything(
    x: Tensor, a: int, b: float | None = None, c: list[Tensor] | None = None, *, d: bool = True,
    e: list[int], s: str = "q", k: torch.dtype = torch.float32,
) -> tuple[Tensor, int]: ...  # fmt: skip


def test_schemas():
    plain = '(Tensor x, SymInt a, float? b=None, Tensor[]? c=None, *, bool d=True, SymInt[] e, str s="q", ScalarType k=float32) -> (Tensor, SymInt)'
    assert infer_schema(everything, mutates_args=()) == plain
    written = plain.replace("Tensor x", "Tensor(a0!) x")
    assert infer_schema(everything, mutates_args=["x"], op_name="a::b") == "a::b" + written
    written = written.replace("Tensor[]? c", "Tensor(a3!)[]? c")
    assert infer_schema(everything, mutates_args="unknown") == written
    for function, mutated, message in (
        (everything, "x", "sequence of the names"),
        (everything, {"zz"}, "were not found"),
        (everything, {"a"}, "only Tensors"),
        (lambda x: x, (), "must have a type annotation"),
        (lambda *x: x, (), "varargs"),
    ):
        with pytest.raises(ValueError, match=message):
            infer_schema(function, mutates_args=mutated)


def test_compiled_programs_notice_another_fake():
    times = 1

    @custom_op("library_test::repeated", mutates_args=())
    def repeated(x: Tensor) -> Tensor:
        return torch.cat([x] * times)

    repeated.register_fake(lambda x: torch.empty_like(x))
    compiled = torch.compile(lambda x: repeated(x) + 1, fullgraph=True)
    assert compiled(torch.ones(3)).tolist() == [2] * 3
    for times in (2, 3):
        repeated.register_fake(lambda x, n=times: x.new_empty(x.shape[0] * n))
        assert compiled(torch.ones(3)).tolist() == [2] * (3 * times)
