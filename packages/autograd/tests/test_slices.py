"""Gradients of slices of one tensor: all but the first add to its gradient in their place."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import leaf, random_leaf

import argand_aten as aten
import argand_autograd as autograd
import argand_c10

SLICED = {
    "unbind": lambda x: x.unbind(0),
    "split": lambda x: x.split([1, 0, 3], 1),
    "chunk": lambda x: x.chunk(2, -1),
    "rows and columns": lambda x: [x[1], x[:, 2:], x[0], x[::2, 1]],
    "diagonals": lambda x: [x.diagonal(), x.diagonal(1), x.diagonal(-1)],
    "windows": lambda x: [x.unfold(1, 2, 2), x.unfold(1, 2, 1), x[2]],
    "of a transposed": lambda x: x.t().unbind(0),
    "of a broadcast": lambda x: x[:1].expand(4, 4).unbind(0),
    "twice": lambda x: [x[1], x[1], x[1]],
}


def placed(pieces, x, weights):
    """The gradient of sum(piece * weight) by NumPy: weights added where the pieces' elements come from."""
    numbers = argand_c10.tensor(np.arange(x.numel()).reshape(tuple(x.shape)))
    total = np.zeros(x.numel())
    for piece, weight in zip(pieces(numbers), weights, strict=True):
        np.add.at(total, piece.numpy().reshape(-1), weight.numpy().reshape(-1))
    return total.reshape(tuple(x.shape))


@pytest.mark.parametrize("name", SLICED)
@pytest.mark.parametrize("create_graph", [False, True])
def test_every_slice_counts(name, create_graph):
    x = random_leaf(4, 4)
    parts = SLICED[name](x)
    weights = [
        argand_c10.tensor(np.random.default_rng(k).random(tuple(p.shape)))
        for k, p in enumerate(parts)
    ]
    autograd.backward(list(parts), weights, create_graph=create_graph)
    np.testing.assert_allclose(
        x.grad.detach().numpy(), placed(SLICED[name], x, weights), rtol=1e-14
    )


def test_gradients_that_are_held_do_not_change():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g))
    a, b = y[0], y[1]
    whole = argand_c10.tensor(np.ones((2, 2)))
    held = whole.clone()
    autograd.backward([y, a, b], [whole, whole[0], whole[1]])
    assert whole.tolist() == held.tolist()
    assert seen[0].tolist() == x.grad.tolist() == [[2, 2], [2, 2]]
    (kept,) = autograd.grad(y.sum() + y[0].sum(), [y])
    assert kept.tolist() == [[2, 2], [1, 1]]


def test_one_slice_makes_a_whole_gradient():
    names = []

    class Log(argand_c10.ArgandDispatchMode):
        def __argand_dispatch__(self, op, types, args=(), kwargs=None):
            names.append(op.name)
            return op(*args, **(kwargs or {}))

    x = random_leaf(64, 3)
    weight = aten.ones([3], dtype=argand_c10.float64)
    with Log():
        autograd.backward(list(x.unbind(0)), [weight] * 64)
    assert names.count("select_backward") == 1 and names.count("add_") == 63
    assert x.grad.tolist() == [[1.0] * 3] * 64
