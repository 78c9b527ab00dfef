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


def counted(f):
    calls = []

    def run(*args):
        calls.append(len(calls))
        return f(*args)

    return run, calls


def test_runs_once():
    x, w = numbers(5, 3), numbers(3)
    f, calls = counted(lambda v, row: ((row * v).sin().softmax(0).cumsum(0) ** 2).sum())
    per_entry = [func.grad(f)(w, row) for row in x]
    calls.clear()
    same(vmap(func.grad(f), (None, 0))(w, x), aten.stack(per_entry))
    assert calls == [0]
    calls.clear()
    found = vmap(vmap(f, (None, 0)), (0, None))(aten.stack([w, 2 * w]), x)
    assert calls == [0] and found.shape == (2, 5)
    calls.clear()
    vmap(f, (None, 0), chunk_size=2)(w, x)
    assert calls == [0, 1, 2]


def test_what_one_run_cannot_do_runs_entry_by_entry():
    x = numbers(4, 3)
    chosen = aten.where(x.sum(1, keepdim=True) > 0, x * 2, -x)
    f, calls = counted(lambda a: a * 2 if a.sum() > 0 else -a)
    same(vmap(f)(x), chosen)
    assert len(calls) == 4
    vmap(f)(x)
    assert len(calls) == 8  # another vmap tries again
    again = vmap(f)
    again(x), again(x)
    assert len(calls) == 16
    f, calls = counted(lambda a: a * 2 if (a * 0).sum() == 0 else -a)  # all entries say the same
    same(vmap(f)(x), x * 2)
    assert len(calls) == 1

    def written(a):
        made = aten.zeros([3], dtype=c10.float64)
        made[:] = a
        return made

    same(vmap(written)(x), x)
    same(vmap(lambda a: c10.tensor(a.numpy() * 2))(x), x * 2)
    same(vmap(lambda a: a.data * 2)(x), x * 2)
    same(
        vmap(lambda a: a[a > a.mean()].sum())(x),
        aten.where(x > x.mean(1, keepdim=True), x, 0).sum(1),
    )


def test_an_entry_that_outlives_its_vmap_is_refused():
    kept = []
    vmap(lambda a: (kept.append(a), a)[1])(numbers(2, 3))
    with pytest.raises(RuntimeError, match="entries of a vmap that has returned"):
        kept[0] + 1


def test_views_and_in_place_changes_of_entries():
    def f(a):
        y = a * 2
        y[0] = 5.0
        y[1:].mul_(a[1:])
        y.t()[..., 0].add_(a[0])
        return (y**2).sum()

    x = numbers(4, 3, 2)
    same(vmap(f)(x), aten.stack([f(row) for row in x]))
    same(vmap(func.grad(f))(x), aten.stack([func.grad(f)(row) for row in x]))
    leaf = random_leaf(4, 3, 2)
    vmap(func.grad(f))(leaf).sum().backward()
    alone = random_leaf(4, 3, 2)
    aten.stack([func.grad(f)(row) for row in alone]).sum().backward()
    same(leaf.grad, alone.grad)
    written = x.clone()
    vmap(lambda a: a.mul_(2))(written)
    same(written, x * 2)


def test_results_have_memory_of_their_own():
    x = numbers(3, 2)
    found = vmap(lambda a: a)(x)
    found.zero_()
    assert x.abs().sum().item() > 0


def test_jacobians_take_one_backward():
    backwards = []

    class Counted(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            backwards.append(tuple(grad.shape))
            return grad

    x = numbers(6)
    jacobian = jacrev(lambda a: Counted.apply(a).sin())(x)
    same(jacobian, aten.diag(x.cos()))
    assert backwards == [(6,)]
    backwards.clear()
    same(jacrev(lambda a: Counted.apply(a).sin(), chunk_size=4)(x), jacobian)
    assert len(backwards) == 2
    backwards.clear()
    y = Counted.apply(random_leaf(6))
    z = y.sin()
    (rows,) = autograd.grad(z, y, aten.eye(6, dtype=c10.float64), is_grads_batched=True)
    same(rows, aten.diag(y.cos()))


def test_random_numbers_of_entries():
    x = aten.ones([6, 50], dtype=c10.float64)
    f, calls = counted(lambda a: aten.bernoulli(a / 2))
    different = vmap(f, randomness="different")(x)
    assert calls == [0] and len({tuple(row.tolist()) for row in different}) == 6
    equal = vmap(f, randomness="same")(x)
    assert len({tuple(row.tolist()) for row in equal}) == 1


def test_function_with_a_rule():
    seen = []

    class Square(autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

        @staticmethod
        def vmap(info, in_dims, x):
            seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
            return Square.apply(x).t(), 1

    x = numbers(3, 4)
    same(vmap(Square.apply)(x), x * x)
    assert seen == [(3, "error", (0,), (3, 4))]
    same(vmap(func.grad(lambda a: Square.apply(a).sum()))(x), 2 * x)
