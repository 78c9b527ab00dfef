"""Distinct elements, histograms and derivatives on grids, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import argand_aten as torch
import argand_c10 as c10

RNG = np.random.default_rng(5)
INTEGERS = RNG.integers(0, 6, (4, 5))
FLOATS = RNG.normal(size=(4, 5))


def check(got, want):
    np.testing.assert_allclose(np.asarray(got.numpy()), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, bool])
def test_unique(dtype, dim):
    x = (INTEGERS % 2 if dtype is bool else INTEGERS).astype(dtype)
    values, inverse, counts = torch.unique(
        torch.from_numpy(x), return_inverse=True, return_counts=True, dim=dim
    )
    want = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    check(values, want[0])
    check(counts, want[2])
    assert tuple(inverse.shape) == (x.shape if dim is None else (x.shape[dim],))
    check(inverse, np.reshape(want[1], tuple(inverse.shape)))
    check(torch.unique(torch.from_numpy(x), dim=dim), want[0])


def test_unique_keeps_every_nan_and_takes_no_elements():
    assert len(torch.unique(torch.tensor([float("nan"), 1.0, float("nan")]))) == 3
    values, counts = torch.unique(torch.zeros(0), return_counts=True)
    assert values.shape == (0,) and counts.shape == (0,) and counts.dtype is c10.int64
    with pytest.raises(RuntimeError, match="empty dimension"):
        torch.unique(torch.zeros(3, 0), dim=0)


@pytest.mark.parametrize("shape", [(40, 1), (300, 3), (20, 200)])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float16, np.uint16, bool])
def test_unique_of_rows_that_differ_late(dtype, shape):
    """Rows are many, or long, and repeated; most are equal in their first columns."""
    x = (RNG.uniform(size=shape) < 0.02).astype(dtype)
    x = np.concatenate([x, x[::-1]])
    got = torch.unique(torch.from_numpy(x), return_inverse=True, return_counts=True, dim=0)
    want = np.unique(x, return_inverse=True, return_counts=True, axis=0)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a.numpy(), np.reshape(b, tuple(a.shape)))
    across = torch.unique(torch.from_numpy(x.T.copy()), dim=1)
    np.testing.assert_array_equal(across.numpy(), want[0].T)


def test_unique_rows_with_nan_and_zeros_of_both_signs():
    nan = float("nan")
    x = torch.tensor([[nan, 1.0], [0.0, 2.0], [-0.0, 2.0], [nan, 0.0], [0.0, nan], [-1.0, 5.0]])
    values, inverse = torch.unique(x, return_inverse=True, dim=0)
    np.testing.assert_array_equal(values.numpy(), [[-1, 5], [0, 2], [0, nan], [nan, 0], [nan, 1]])
    assert inverse.tolist() == [4, 1, 1, 3, 2, 0]


def test_runs_begin_with_their_first_element():
    x = torch.tensor([0.0, -0.0, -0.0, 1.0, float("nan"), float("nan"), -0.0, 0.0])
    values = torch.unique_consecutive(x)
    np.testing.assert_array_equal(np.signbit(values.numpy()), [0, 0, 0, 0, 1])
    assert torch.unique_consecutive(x, return_counts=True)[1].tolist() == [3, 1, 1, 1, 2]
    z = torch.tensor([1 + 1j, 1 + 1j, 1 - 1j, 2 - 1j, 2 - 1j])
    values, inverse = torch.unique_consecutive(z, return_inverse=True)
    assert values.tolist() == [1 + 1j, 1 - 1j, 2 - 1j] and inverse.tolist() == [0, 0, 1, 2, 2]
    assert torch.unique_consecutive(z).tolist() == values.tolist()
    assert torch.unique_consecutive(torch.zeros(0)).shape == (0,)


def test_errors_of_runs():
    ops = torch.ops
    starts = torch.tensor([True, False])
    with pytest.raises(IndexError, match="got place 2, expected 0 to 1"):
        ops._run_places(starts, torch.tensor([0, 2]))
    with pytest.raises(RuntimeError, match="expected vectors of one size, bool and int64"):
        ops._run_places(starts, torch.tensor([0, 1, 2]))
    with pytest.raises(RuntimeError, match="expected a matrix"):
        ops._lexicographic_order(starts)
    with pytest.raises(RuntimeError, match="expected at least one"):
        ops._run_starts(torch.tensor(1))
    with pytest.raises(RuntimeError, match="expected one dimension"):
        ops._distinct_neighbours(torch.zeros(2, 2))


def test_unique_consecutive():
    x = torch.tensor([1, 1, 2, 2, 3, 1, 1])
    values, inverse, counts = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3, 1]
    assert inverse.tolist() == [0, 0, 1, 1, 2, 3, 3]
    assert counts.tolist() == [2, 2, 1, 2]
    rows = torch.tensor([[1, 2], [1, 2], [1, 3]])
    values, counts = rows.unique_consecutive(return_counts=True, dim=0)
    assert values.tolist() == [[1, 2], [1, 3]] and counts.tolist() == [2, 1]


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("spacing", [1, 0.5, [2.0, 0.25]])
def test_gradient(spacing, edge_order):
    got = torch.gradient(torch.from_numpy(FLOATS), spacing=spacing, edge_order=edge_order)
    want = np.gradient(
        FLOATS, *(spacing if isinstance(spacing, list) else [spacing]), edge_order=edge_order
    )
    for a, b in zip(got, want, strict=True):
        check(a, b)


def test_gradient_at_coordinates():
    at = np.array([0.0, 1.0, 1.5, 4.0])
    for edge_order in (1, 2):
        (got,) = torch.gradient(
            torch.from_numpy(FLOATS), spacing=(torch.from_numpy(at),), dim=0, edge_order=edge_order
        )
        check(got, np.gradient(FLOATS, at, axis=0, edge_order=edge_order))
    with pytest.raises(RuntimeError, match="coordinates"):
        torch.gradient(torch.from_numpy(FLOATS), spacing=(torch.from_numpy(at),), dim=1)
    with pytest.raises(RuntimeError, match="edge_order"):
        torch.gradient(torch.zeros(2), edge_order=2)


def test_histogram():
    x, weights = FLOATS.reshape(-1), RNG.uniform(size=20)
    for bins, kwargs in ((4, {}), (3, {"range": (-1.0, 2.0)}), (5, {"density": True})):
        hist, edges = torch.histogram(torch.from_numpy(x), bins, **kwargs)
        want, want_edges = np.histogram(x, bins, **kwargs)
        check(hist, want)
        check(edges, want_edges)
    edges = np.array([-1.0, -0.5, 0.0, 2.0])
    hist, same = torch.histogram(
        torch.from_numpy(x), torch.from_numpy(edges), weight=torch.from_numpy(weights)
    )
    check(hist, np.histogram(x, edges, weights=weights)[0])
    check(same, edges)
    assert same.data_ptr() != edges.__array_interface__["data"][0]


def test_histogram_counts_the_last_edge_and_leaves_out_nan():
    x = torch.tensor([0.0, 1.0, 2.0, 2.0, float("nan"), 3.0])
    assert torch.histogram(x, torch.tensor([0.0, 1.0, 2.0]))[0].tolist() == [1.0, 3.0]
    assert torch.histc(x, 2, 0, 2).tolist() == [1.0, 3.0]
    assert torch.histc(torch.ones(3), 3).tolist() == [0.0, 3.0, 0.0]
    edges = torch.from_numpy(np.arange(15, dtype=np.float32) * np.float32(3) / np.float32(14))
    assert torch.histc(edges, 14, 0, 3).tolist() == [1.0] * 13 + [2.0]
    wide = torch.tensor([3.4e38, -3.4e38, 1e38])
    assert torch.histc(wide, 4).tolist() == [1.0, 0.0, 1.0, 1.0]
    assert torch.histc(wide[1:], 4).tolist() == [1.0, 0.0, 0.0, 1.0]
    with pytest.raises(RuntimeError, match="bins"):
        torch.histc(x, 0)


@pytest.mark.parametrize("right", [False, True])
def test_bucketize(right):
    edges = np.array([-1.0, 0.0, 0.5])
    x = np.array([[-2.0, -1.0, 0.2], [0.5, 0.0, 9.0]])
    got = torch.bucketize(torch.from_numpy(x), torch.from_numpy(edges), right=right)
    check(got, np.searchsorted(edges, x, side="right" if right else "left"))
    assert got.dtype is c10.int64
    assert torch.bucketize(0.2, torch.from_numpy(edges), out_int32=True).dtype is c10.int32


def test_nonzero_and_sizes():
    assert torch.is_nonzero(torch.tensor([2.0])) and not torch.is_nonzero(torch.tensor(0))
    with pytest.raises(RuntimeError, match="more than one"):
        torch.is_nonzero(torch.zeros(2))
    assert torch.is_same_size(torch.zeros(2, 3), torch.ones(2, 3))
    assert not torch.is_signed(torch.zeros(1, dtype=c10.uint8))


def test_ties_and_missing_values_of_order_statistics():
    nan = float("nan")
    x = torch.tensor([[1.0, nan, 3.0, 2.0], [5.0, 4.0, 4.0, 1.0]])
    assert torch.median(x, 1).values.tolist()[1] == 4.0 and bool(
        torch.isnan(torch.median(x, 1).values[0])
    )
    assert torch.nanmedian(x, 1).values.tolist() == [2.0, 4.0]
    assert torch.nanmedian(x).item() == 3.0
    assert bool(torch.isnan(torch.quantile(x, 0.5)))
    assert torch.nanquantile(x, 0.5, dim=1).tolist() == [2.0, 4.0]
    values, indices = torch.mode(torch.tensor([[3, 1, 3, 1], [2, 2, 5, 7]]), 1)
    assert values.tolist() == [1, 2] and indices.tolist() == [3, 1]
    values, indices = torch.cummax(torch.tensor([1.0, 3.0, 3.0, nan, 5.0]), 0)
    assert values.tolist()[:3] == [1.0, 3.0, 3.0] and indices.tolist() == [0, 1, 2, 3, 3]
