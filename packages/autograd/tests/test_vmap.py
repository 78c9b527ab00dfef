"""vmap against the written-out batch dimension."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import random_leaf

import argand_aten as aten
import argand_autograd as autograd
import argand_c10 as c10
from argand_autograd import func, functional
from argand_autograd._tree import flatten
from argand_autograd.func import hessian, jacfwd, jacrev, vmap


def numbers(*shape):
    return c10.tensor(np.random.default_rng(sum(shape)).standard_normal(shape))


def same(found, expected):
    assert tuple(found.shape) == tuple(expected.shape) and found.dtype == expected.dtype
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-12)


def test_dimensions():
    x, y = numbers(3, 4), numbers(4, 3)
    same(vmap(lambda a, b: a * b, (0, 1))(x, y), x * y.t())
    same(vmap(lambda a, b: a @ b, (0, None))(x, y), x @ y)
    same(vmap(aten.dot, (-1, 0))(x, y), (x * y.t()).sum(0))
    same(vmap(lambda a: a.expand(2, 4), out_dims=1)(x), x.expand(2, 3, 4))
    same(vmap(lambda a: a * 2, out_dims=-1)(x), (x * 2).t())
    same(vmap(vmap(aten.dot))(numbers(2, 3, 4), numbers(2, 3, 4)), (numbers(2, 3, 4) ** 2).sum(-1))


def test_structures():
    x, y = numbers(3, 4), numbers(3, 2)
    found = vmap(
        lambda d, s: {"sum": d["a"].sum() + s, "both": (d["a"], d["b"])},
        ({"a": 0, "b": None}, None),
    )({"a": x, "b": y}, numbers(1)[0])
    same(found["sum"], x.sum(1) + numbers(1)[0])
    same(found["both"][0], x)
    same(found["both"][1], y.expand(3, 3, 2))
    first, second = vmap(lambda a, *, scale: (a * scale, a.sum()), out_dims=(1, 0))(
        x, scale=y[0, 0]
    )
    same(first, (x * y[0, 0]).t())
    same(second, x.sum(1))
    (kept, shared) = vmap(lambda a: (a, y), out_dims=(0, None))(x)
    assert kept.shape == x.shape and shared is y


def test_gradients():
    x, w = random_leaf(5, 3), random_leaf(3)
    vmap(lambda row: (row * w).sin().sum())(x).sum().backward()
    same(x.grad, (x * w).cos() * w)
    same(w.grad, ((x * w).cos() * x).sum(0))
    per_sample = vmap(func.grad(lambda v, row: (row * v).sin().sum()), (None, 0))(
        w.detach(), x.detach()
    )
    same(per_sample, (x * w).cos() * x)
    same(
        func.grad(lambda v: vmap(aten.dot, (None, 0))(v, x).square().sum())(w.detach()),
        2 * x.t() @ (x @ w),
    )


@pytest.mark.parametrize("randomness", ["error", "different"])
def test_entries_share_a_graph(randomness):
    x = random_leaf(3)
    y = x.sin()
    (jacobian,) = vmap(lambda v: autograd.grad(y, x, v), randomness=randomness)(aten.eye(3))
    same(jacobian, aten.diag(x.cos()))
    with pytest.raises(RuntimeError, match="second time"):
        autograd.grad(y.sum(), x)


def test_no_entries():
    found = vmap(lambda a: (a.sum(), a.expand(2, 4)), out_dims=(0, 1))(c10.tensor(np.zeros((0, 4))))
    assert [tuple(t.shape) for t in found] == [(0,), (2, 0, 4)]
    none = c10.tensor(np.zeros((0, 4)))
    assert vmap(lambda a: a.expand(2, 4), out_dims=(1,))(none).shape == (2, 0, 4)


def test_random_numbers():
    x = numbers(4, 2)

    def noisy(a):
        return a + aten.rand([2], dtype=c10.float64)

    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(noisy)(x)
    c10.manual_seed(1)
    noise = vmap(noisy, randomness="same")(x) - x
    np.testing.assert_allclose(noise.numpy(), np.tile(noise.numpy()[:1], (4, 1)), atol=1e-15)
    noise = (vmap(noisy, randomness="different")(x) - x).numpy()
    assert len(np.unique(noise.round(12))) == 8


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: vmap(aten.sin)(), "no inputs"),
        (lambda x: vmap(aten.sin, [0])(x), "in_dims of type list"),
        (lambda x: vmap(aten.sin, (0, 0))(x), "not structured as the inputs"),
        (lambda x: vmap(aten.sin, None)(x), "in_dims of type NoneType"),
        (lambda x: vmap(aten.mul, (None, None))(x, x), "at least one input"),
        (lambda x: vmap(aten.mul)(x, 2.0), "type float for in_dim 0"),
        (lambda x: vmap(aten.sin, 2)(x), r"in_dim 2 for a tensor of 2 dimensions"),
        (
            lambda x: vmap(aten.mul)(x, x.t()),
            r"same size in the mapped dimension, got sizes \[3, 4\]",
        ),
        (lambda x: vmap(lambda a: 1.0)(x), "returned float"),
        (
            lambda x: vmap(lambda a: (a,) if a[0] > x[:, 0].mean() else [a])(x),
            "different structures",
        ),
        (lambda x: vmap(aten.sin, out_dims=(0, 1))(x), "out_dims"),
        (lambda x: vmap(aten.sin, chunk_size=0), "chunk_size 0"),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call(numbers(3, 4))


def strides(f, *shape):
    return f(aten.randn(*shape)).stride()


@pytest.mark.parametrize("vmapped", [
    (lambda x: x.sin(), 0, (6, 2, 1)),
    (lambda x: x.sin(), 1, (2, 6, 1)),  # entries are outermost in memory
    (lambda x: x.sin(), -1, (2, 1, 6)),
    (lambda x: x.t() * 2, 0, (6, 1, 2)),  # and lie there as each by itself
    (lambda x: x.t() * 2, 2, (1, 2, 6)),
    (lambda x: x[0].expand(3, 2), 0, (6, 2, 1)),
])  # fmt: skip
def test_strides(vmapped):
    function, out_dim, want = vmapped
    assert strides(vmap(function, out_dims=out_dim), 4, 3, 2) == want


def test_strides_of_jacobians():
    assert strides(jacrev(lambda x: x.sin()), 3, 2) == (12, 6, 2, 1)
    assert strides(jacrev(lambda x: x.t() * 2), 3, 2) == (18, 6, 1, 3)
    assert strides(jacfwd(lambda x: x.sin()), 3, 2) == (2, 1, 12, 6)
    assert strides(jacfwd(lambda x: x.sum(1)), 3, 2) == (1, 6, 3)
    assert strides(hessian(lambda x: (x**2).sum()), 3, 2) == (2, 1, 12, 6)
    jacobian = functional.jacobian(lambda x: x.t() * 2, aten.randn(3, 2))
    assert jacobian.stride() == (18, 6, 2, 1)


def test_results_are_put_together_by_their_names():
    def f(x):
        made = {"a": x, "b": -x}
        return made if x > 2 else dict(reversed(made.items()))

    found = vmap(f)(aten.arange(1.0, 5.0))
    assert found["a"].tolist() == [1, 2, 3, 4] and found["b"].tolist() == [-1, -2, -3, -4]


def test_jacfwd_of_several_arguments_and_results():
    x, y = aten.randn(3), aten.randn(2, 3)

    def f(x, y):
        return x * y, (x * y).sum(1)

    found, want = (j(f, (0, 1))(x, y) for j in (jacfwd, jacrev))
    for a, b in zip(flatten(found)[0], flatten(want)[0], strict=True):
        assert a.shape == b.shape and a.tolist() == b.tolist()
    (found,), aux = jacfwd(lambda x, y: (x * y, "aux"), (1,), has_aux=True)(x, y)
    assert found.shape == (2, 3, 2, 3) and aux == "aux"
