"""`out=` of operators made of others; what numbers, dtypes and shapes give and where they are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10

X = [[1.0, -2.0, 3.0], [4.0, 0.0, -6.0]]


def x() -> c10.Tensor:
    return c10.tensor(X)


CALLS: dict[str, Callable[..., Any]] = {
    "max": lambda **k: aten.max(x(), **k),
    "max.other": lambda **k: aten.max(x(), -x(), **k),
    "std.dim_unbiased": lambda **k: aten.std(x(), 1, True, **k),
    "logaddexp": lambda **k: aten.logaddexp(x(), x(), **k),
    "scatter_add": lambda **k: aten.scatter_add(x(), 1, c10.tensor([[0], [2]]), x(), **k),
    "slice_scatter": lambda **k: aten.slice_scatter(x(), x(), 0, 0, 2, 1, **k),
    "index_add": lambda **k: aten.index_add(x(), 0, c10.tensor([1, 1]), x(), **k),
    "nonzero": lambda **k: aten.nonzero(x(), **k),
    "histogram": lambda **k: aten.histogram(x(), 3, **k),
    "roll": lambda **k: aten.roll(x(), 1, **k),
}


@pytest.mark.parametrize("name", CALLS)
def test_out_of_composites(name: str) -> None:
    call = CALLS[name]
    want = call()
    results = want if isinstance(want, tuple) else (want,)
    outs = tuple(aten.empty([0], dtype=r.dtype) for r in results)
    got = call(out=outs if isinstance(want, tuple) else outs[0])
    for result, out, returned in zip(results, outs, got if isinstance(got, tuple) else (got,), strict=True):
        assert returned is out
        np.testing.assert_array_equal(out.numpy(), result.numpy())


def test_out_of_lists() -> None:
    outs = [aten.empty([0]), aten.empty([0])]
    assert aten.unbind_copy(x(), 0, out=outs) is None
    assert [o.tolist() for o in outs] == X
    assert aten.split_with_sizes_copy(x(), [2, 1], 1, out=outs) is None
    assert [tuple(o.shape) for o in outs] == [(2, 2), (2, 1)]
    assert aten.split_copy(x(), 1, out=outs) is None
    assert [o.tolist() for o in outs] == [X[:1], X[1:]]
    with pytest.raises(RuntimeError, match="size 2, got size 1"):
        aten.unbind_copy(x(), 0, out=outs[:1])


def test_out_that_overlaps_is_refused() -> None:
    for call in (lambda out: aten.index_select(x(), 0, c10.tensor([0, 1]), out=out), lambda out: aten.add(x(), 1, out=out)):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            call(aten.expand(c10.tensor([1.0]), [2, 3]))
    both = aten.arange(6.0)
    with pytest.raises(RuntimeError, match="unsupported operation"):
        aten.roll(both[:-1], 1, out=both[1:])


@pytest.mark.parametrize(
    "call",
    [
        lambda: aten.maximum(x(), 2),
        lambda: aten.logical_or(x(), 1),
        lambda: aten.eq(2, x()),
        lambda: aten.le(2, 3),
        lambda: aten.fmod(2, x()),
        lambda: aten.rsub(2, x()),
        lambda: aten.pow(2, 3),
        lambda: aten.remainder(2, 3),
        lambda: aten.bitwise_and(2, 3),
        lambda: aten.xlogy(2, 3),
    ],
)
def test_numbers_where_tensors_are_expected(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError):
        call()


def test_numbers_in_place_of_all_tensors() -> None:
    assert aten.add(2, 3).item() == 5
    assert aten.floor_divide(7, 2).item() == 3
    assert (2 < x()).tolist() == [[False, False, True], [True, False, False]]
    assert aten.pow(2, c10.tensor([3])).tolist() == [8]


def test_masked_fill_converts_its_value() -> None:
    every = c10.tensor([True, True])
    assert aten.masked_fill(c10.tensor([True, False]), every, 10).tolist() == [True, True]
    assert aten.masked_fill(c10.tensor([1, 2]), every, 1.5).tolist() == [1, 1]
    assert aten.masked_fill(c10.tensor([1, 2]), every, c10.tensor(1.5)).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="without overflow"):
        aten.masked_fill(x(), x() > 0, 1j)


def test_dtypes_of_results() -> None:
    bools = aten.ones([2, 3], dtype=c10.bool)
    assert bools.sum_to_size(1, 3).tolist() == [[2, 2, 2]]
    assert aten.square(bools).dtype is c10.int64
    ones = aten.ones([1, 2, 2], dtype=c10.int64)
    assert aten.baddbmm(ones, ones * 3, ones * 2, beta=1.7, alpha=1.6).tolist() == [[[13, 13], [13, 13]]]
    true = c10.tensor([True])
    assert aten.addr(c10.tensor([[True, False]]), true, c10.tensor([False, True])).tolist() == [[True, True]]
    with pytest.raises(RuntimeError, match="In-place abs"):
        c10.tensor([1j]).abs_()


@pytest.mark.parametrize("dtype", [c10.float16, c10.bfloat16])
def test_nextafter_of_half_types(dtype: Any) -> None:
    a = c10.tensor([0.0, -0.0, 1.0, 1.0, -1.0, float("inf"), 2.0, 1.0]).to(dtype)
    b = c10.tensor([1.0, -1.0, 2.0, 0.0, 0.0, 0.0, 2.0, float("nan")]).to(dtype)
    got = aten.nextafter(a, b)
    step = 2.0**-10 if dtype is c10.float16 else 2.0**-7
    small = got[0].item()
    assert 0 < small < 1e-7
    assert got[1].item() == -small
    assert got[2:5].tolist() == [1 + step, 1 - step / 2, -1 + step / 2]
    assert np.isfinite(got[5].item())
    assert got[6].item() == 2.0
    assert np.isnan(got[7].item())


def test_what_is_refused() -> None:
    empty = aten.ones([5, 0, 5])
    with pytest.raises(IndexError):
        aten.amax(empty, 1)
    with pytest.raises(RuntimeError, match="0-dim"):
        aten.narrow(c10.tensor(1.0), 0, 0, 1)
    with pytest.raises(RuntimeError, match="index_add"):
        aten.index_add(aten.ones([3, 2]), 0, c10.tensor([0, 2]), c10.tensor([2.0, 4.0]))
    with pytest.raises(RuntimeError, match="integral dtype"):
        aten.cov(aten.ones([5]), fweights=aten.ones([5]))
    with pytest.raises(RuntimeError, match="multiple times"):
        aten.gradient(x(), dim=[1, 1])


def test_defaults_and_fields() -> None:
    assert [g.tolist() for g in aten.gradient(x(), spacing=None)] == [g.tolist() for g in aten.gradient(x())]
    assert aten.diff(x(), 0, 0, x()).tolist() == X
    assert aten.histogramdd(x(), [1, 1, 1]).bin_edges[0].tolist() == [1.0, 4.0]
    half = c10.tensor([17.97]).to(c10.bfloat16)
    assert aten.div(half, c10.tensor([1.0]).to(c10.bfloat16), rounding_mode="trunc").item() == 18.0


def test_out_of_an_overload() -> None:
    x, out = c10.tensor([1.0, 2.0]), c10.tensor([0.0])
    for name, arguments in (("add.out", (x, x)), ("laguerre_polynomial_l.out", (x, 2))):
        assert c10.find_operator(name)(*arguments, out=out) is out
        assert out.shape == (2,)
