"""Copies between random strided places, searches and sorts, against NumPy's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import argand_c10 as c10
from argand_aten import ops

DTYPES = ["uint8", "int16", "float32", "int64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_layouts(dtype):
    rng = np.random.default_rng(0)
    lengths = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 64, 100]
    for _ in range(150):
        shape = rng.choice(lengths, rng.integers(1, 5))
        while np.prod(shape) > 5000:
            shape[np.argmax(shape)] = 2
        x = rng.integers(0, 200, shape).astype(dtype)
        t = c10.from_numpy(x)
        for _ in range(rng.integers(1, 4)):
            kind, d = rng.integers(4), int(rng.integers(x.ndim))
            if kind == 0:
                order = [int(i) for i in rng.permutation(x.ndim)]
                x, t = x.transpose(order), ops.permute(t, order)
            elif kind == 1 and x.ndim < 5:
                x = np.repeat(np.expand_dims(x, d), 20, d)
                t = ops.expand(ops.unsqueeze(t, d), x.shape)
            elif kind == 2:
                first = int(rng.integers(x.shape[d]))
                x, t = x.take(range(first, x.shape[d]), d), ops.slice(t, d, first, x.shape[d], 1)
            else:
                x, t = np.flip(x, d), ops.flip(t, [d])
        np.testing.assert_array_equal(ops.clone(t, memory_format=c10.contiguous_format).numpy(), x)
        wider = ops.zeros([n + 3 for n in x.shape], dtype=getattr(c10, dtype))
        place = wider
        for d, n in enumerate(x.shape):
            place = ops.slice(place, d, 2, n + 2, 1)
        ops.copy_(place, t)
        expected = np.zeros([n + 3 for n in x.shape], dtype)
        expected[tuple(slice(2, n + 2) for n in x.shape)] = x
        np.testing.assert_array_equal(wider.numpy(), expected)


def test_rows_that_begin_a_little_behind_their_source():
    x = np.arange(1100 * 5, dtype=np.float32).reshape(5, 1100)
    for k in range(12):
        rolled = ops.roll(c10.from_numpy(x), [k], [1])
        np.testing.assert_array_equal(rolled.numpy(), np.roll(x, k, 1))


@pytest.mark.parametrize("right", [False, True])
def test_searches(right):
    rng = np.random.default_rng(1)
    side = "right" if right else "left"
    for n, dtype in itertools.product([0, 1, 2, 3, 7, 64, 1000], ["float32", "int32", "float64"]):
        edges = np.sort(rng.integers(0, 50, n)).astype(dtype)
        values = rng.integers(-2, 53, 5000).astype(dtype)
        if dtype != "int32" and n > 2:
            edges[-2:] = np.nan
            values[::7] = np.nan
        found = ops.searchsorted(c10.from_numpy(edges), c10.from_numpy(values), right=right)
        np.testing.assert_array_equal(found.numpy(), np.searchsorted(edges, values, side))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "bounds", [(-5, 5), (-(2**31), 2**31), (2**62, 2**62 + 99), (-(2**63), 2**63 - 1)]
)
def test_sorts_of_long_integers(bounds, descending):
    rng = np.random.default_rng(2)
    x = rng.integers(*bounds, (3, 700))
    x[0, :2] = bounds[0], bounds[1] - 1
    values, indices = ops.sort(c10.from_numpy(x), 1, descending)
    expected = np.argsort(-x if descending and abs(bounds[0]) < 2**62 else x, 1, kind="stable")
    if descending and abs(bounds[0]) >= 2**62:
        expected = x.shape[1] - 1 - np.argsort(x[:, ::-1], 1, kind="stable")[:, ::-1]
    np.testing.assert_array_equal(indices.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, expected, 1))
