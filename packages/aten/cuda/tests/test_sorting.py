"""Sorting long rows by digits, and the first k of rows held in registers, on an emulated CUDA device against the CPU."""

from __future__ import annotations

from typing import Any

import emulated
import numpy as np
import pytest
from interpreter import run

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10
from argand_aten_cuda.kernels import radix

emulated.start()
RNG = np.random.default_rng(0)


def make(shape: tuple[int, ...], dtype: str) -> Any:
    """Many equal elements, and those that need care."""
    x = aten.tensor(RNG.integers(-40, 40, shape))
    if dtype in ("int64", "uint64", "float64"):
        x = x * 2**33 + aten.tensor(RNG.integers(-3, 3, shape))
    x = (x > 0) if dtype == "bool" else x.to(getattr(c10, dtype))
    if x.dtype.is_floating_point:
        x = x * 1.0107 + 0.3  # every bit of the mantissa counts
        row = x.view(-1)
        for i, value in enumerate((np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan)):
            row[7 * i + 1] = value
            row[-7 * i - 2] = value
    return x


def same(f: Any, x: Any) -> None:
    got, want = f(x.to("cuda")), f(x)
    emulated.check()
    for a, b in zip(got, want, strict=True):
        a = a.to("cpu")
        if a.dtype == c10.bfloat16:
            a, b = a.to(c10.float32), b.to(c10.float32)
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def first(x: Any, k: int, dim: int, largest: bool = True) -> Any:
    """topk, and on the CPU, where it chooses otherwise among equal elements, the beginning of a stable sort."""
    if x.device.type == "cuda":
        return aten.topk(x, k, dim, largest)
    return tuple(t.narrow(dim, 0, k) for t in aten.sort(x, dim, largest, stable=True))


@pytest.mark.parametrize(
    ("dtype", "descending"),
    [("bool", True), ("uint8", False), ("int8", True), ("int64", False), ("bfloat16", False), ("float16", True), ("float32", True),
     ("uint16", True), ("uint32", False), ("uint64", True)],
)  # fmt: skip
def test_long_rows(dtype: str, descending: bool) -> None:
    same(lambda x: aten.sort(x, 1, descending), make((1, 4100 + 12 * descending), dtype))


def test_first_of_wide_and_of_bools() -> None:
    same(lambda x: first(x, 5, 1), make((2, 300), "uint64"))
    with pytest.raises(NotImplementedError, match="topk: not implemented for dtype bool"):
        aten.topk(make((3, 300), "bool").to("cuda"), 2)


def test_rows_of_several_dimensions() -> None:
    emulated.launches.clear()
    same(lambda x: aten.sort(x, 1), make((1, 4100, 2), "int8"))
    same(lambda x: aten.sort(x.t(), 0, True), make((2, 4100), "uint8"))
    same(lambda x: first(x, 2500, 0), make((4200, 2), "uint8"))
    names = {n.split(";")[0] for n in emulated.launches}
    assert names >= {"radix_count", "radix_few_starts", "radix_scatter"}


@pytest.mark.parametrize(
    ("dtype", "n"), [("int64", 257), ("float64", 1025), ("float16", 1030), ("uint8", 2049), ("float32", 4096)]
)  # fmt: skip
def test_rows_of_a_program(dtype: str, n: int) -> None:
    emulated.launches.clear()
    for descending in (False, True):
        same(lambda x, d=descending: aten.sort(x, 1, d, stable=True), make((2, n), dtype))
    assert {name.split(";")[0] for name in emulated.launches} >= {"radix_rows"}


@pytest.mark.parametrize("dtype", ["bool", "uint16", "bfloat16", "float32"])
def test_rows_in_registers(dtype: str) -> None:
    emulated.launches.clear()
    for descending in (False, True):
        same(lambda x, d=descending: aten.sort(x, 1, d, stable=True), make((3, 300), dtype))
    same(lambda x: aten.sort(x, 0, stable=True), make((512, 2), dtype))
    assert {n.split(";")[0] for n in emulated.launches} >= {"sort_rows"}


def _check_choices(x: Any, dim: int, *ks: int) -> None:
    """Medians and k-th elements along `dim` against a stable sort."""
    wide = c10.float64 if x.dtype.is_floating_point else c10.int64
    ordered, order = (t.numpy() for t in aten.sort(x.to(wide), dim, stable=True))
    numbers = (~np.isnan(ordered)).sum(dim)
    n, y = x.shape[dim], x.to("cuda")
    calls = [
        (aten.median(y, dim), np.where(numbers < n, numbers, (n - 1) // 2)),
        (aten.nanmedian(y, dim), np.maximum((numbers - 1) // 2, 0)),
        *((aten.kthvalue(y, k, dim), np.full_like(numbers, k - 1)) for k in ks),
    ]
    emulated.check()
    for (value, index), place in calls:
        for got, want in ((value.to(wide), ordered), (index, order)):
            want = np.take_along_axis(want, np.expand_dims(place, dim), dim).squeeze(dim)
            np.testing.assert_array_equal(got.to("cpu").numpy(), want)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "bfloat16", "float16", "float32"])
def test_one_of_each_row(dtype: str) -> None:
    emulated.launches.clear()
    _check_choices(make((3, 301), dtype), 1, 1, 3, 301)
    _check_choices(make((300, 2), dtype), 0, 1, 3, 300)
    few = aten.tensor(RNG.integers(0, 5, (2, 5, 3))).to(getattr(c10, dtype))
    _check_choices(few, 1, 1, 3, 5)
    assert any(name.startswith("order_statistic") for name in emulated.launches)


@pytest.mark.parametrize(
    "dtype", ["uint8", "int8", "int16", "bfloat16", "float32", "int64", "float64"]
)
def test_one_of_each_long_row(dtype: str) -> None:
    emulated.launches.clear()
    n = 16400 if getattr(c10, dtype).itemsize < 8 else 2100
    _check_choices(make((1, n), dtype), 1, 1, n // 3, n)
    if dtype in ("uint8", "float64"):
        _check_choices(make((2, n, 2), dtype), 1, n - 5)
        _check_choices(make((n, 1, 3), dtype), 0, 7)
    assert any(name.startswith("select_element") for name in emulated.launches)
    assert not any(name.startswith("radix") for name in emulated.launches)


@pytest.mark.parametrize("few", [True, False])
def test_rows_of_several_tiles(few: bool) -> None:
    """Passes of digits that are all alike leave the others' turns right."""
    n, tiles = 8292, 3
    noise = RNG.integers(0, 1 << 32, n)
    masks = np.array([0xFFFFFFFF, 0xFF00FF00, 0x0F000000, 0x00FFFF10, 0])
    x = (noise & masks[:, None] | 0x00300030 & ~masks[:, None]).astype("uint32")
    rows = len(x)
    counts, totals = np.zeros(rows * tiles * 256, "int32"), np.zeros(rows * 256, "int32")
    values, spare, indices = np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape, "int64")
    places, turned = np.zeros(x.shape, "int32"), np.zeros(x.shape, "int32")
    varying = np.zeros(rows, "int64")
    run(radix.radix_varying, (rows * 2,), varying, x, n, 2, 2, ALIGNED=False)
    np.testing.assert_array_equal(varying, masks)
    how = {"DESCENDING": False, "ALIGNED": False}
    for shift in (0, 8, 16, 24):
        walk = (varying, n, tiles, shift)
        run(radix.radix_count, (rows * tiles,), counts, x, spare, values, *walk, **how)
        if few:
            run(radix.radix_few_starts, (rows,), counts, varying, tiles, shift, BLOCK=16)
        else:
            run(radix.radix_totals, (256 * rows,), totals, counts, varying, tiles, shift, BLOCK=2)
            run(radix.radix_starts, (256 * rows,), counts, totals, varying, tiles, shift, BLOCK=2)
        run(
            radix.radix_scatter, (rows * tiles,), values, indices, x, spare, places, turned, counts, *walk,
            INDICES=True, **how,
        )  # fmt: skip
    np.testing.assert_array_equal(indices, np.argsort(x, axis=1, kind="stable"))
    np.testing.assert_array_equal(values, np.take_along_axis(x, indices, 1))


@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "uint16", "uint32", "float16", "bfloat16", "float32"]
)
def test_first_of_rows(dtype: str) -> None:
    emulated.launches.clear()
    x = make((3, 300), dtype)
    for k, largest in ((1, True), (9, False), (140, True)):
        same(lambda x, k=k, largest=largest: first(x, k, 1, largest), x)
    same(lambda x: first(x, 20, 1), make((1, 1100), dtype))
    same(lambda x: first(x, 5, 0, False), make((300, 3), dtype))
    assert {n.split(";")[0] for n in emulated.launches} & {"topk_rows", "sort_pack"} == {
        "topk_rows"
    }


@pytest.mark.parametrize("step", [1, 1 << 40])
def test_distinct_whole_numbers(step: int) -> None:
    x = aten.tensor(np.random.default_rng(5).integers(-700, 900, 4200) * step)
    emulated.launches.clear()
    got = aten.unique(x.to("cuda"), return_inverse=True, return_counts=True)
    emulated.check()
    narrow = any(n.startswith("radix_count;T=int32") for n in emulated.launches)
    assert narrow == (step == 1)  # a small range is sorted in half the passes
    for a, b in zip(got, aten.unique(x, return_inverse=True, return_counts=True), strict=True):
        assert a.dtype == b.dtype and a.to("cpu").tolist() == b.tolist()


@pytest.mark.parametrize("dtype", ["float32", "int64", "int32", "int8", "uint8", "uint16"])
def test_distinct_elements_alone(dtype: str) -> None:
    """Without indices: whole numbers of a small range are marked, others' keys sorted."""
    x = aten.tensor(np.random.default_rng(5).integers(0 if dtype[0] == "u" else -90, 120, 4200)).to(
        getattr(c10, dtype)
    )
    if x.dtype.is_floating_point:
        x = x * 1.0107
        x[7] = -0.0
        x[9::500] = np.nan
    emulated.launches.clear()
    same(lambda t: (aten.unique(t),), x)
    sorts = [n for n in emulated.launches if n.startswith("radix_scatter")]
    assert bool(sorts) == (dtype in ("float32", "uint16")) and all(
        "INDICES=False" in n for n in sorts
    )
    assert bool(sorts) == any(n.startswith("distinct_write") for n in emulated.launches)
    same(lambda t: (aten.unique_consecutive(t),), x)
    same(lambda t: (aten.unique_consecutive(t),), x[:1])
    same(lambda t: (aten.unique_consecutive(t),), x[:0])
    same(lambda t: aten.unique(t, return_counts=True), x)
    if dtype == "int64":
        same(lambda t: (aten.unique(t * (1 << 40)),), x)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "bfloat16", "int64", "int32", "uint8", "uint32", "bool"]
)
def test_running_extremes(dtype: str) -> None:
    """Along rows side by side, across columns, and of few rows, which are cut into pieces; NaN wins, of equal elements the last."""
    for shape, dim in (
        ((5, 70), 1),
        ((2, 528), 1),
        ((3, 64), 1),
        ((3, 130, 66), 1),
        ((2, 9, 3), 1),
        ((9000,), 0),
        ((), 0),
        ((0, 3), 1),
    ):
        x = aten.tensor(RNG.integers(0 if dtype[0] == "u" else -9, 9, shape))
        x = x > 0 if dtype == "bool" else x.to(getattr(c10, dtype))
        if x.dtype.is_floating_point and x.numel() > 900:
            x.view(-1)[x.numel() // 3 :: 700] = np.nan
            x.view(-1)[::13] = -0.0
        for f in (aten.cummax, aten.cummin):
            same(lambda t, f=f, dim=dim: f(t, dim), x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quantiles_of_one_number(dtype: str) -> None:
    """By choosing two elements of each row, or from sorted rows; NaN where there is one."""
    x = aten.tensor(RNG.standard_normal((4, 30)).astype(dtype))
    x[1, 5] = np.nan
    for q, how in (
        (0.3, "linear"),
        (0.1, "lower"),
        (0.73, "higher"),
        (0.5, "midpoint"),
        (1.0, "nearest"),
    ):
        same(lambda t, q=q, how=how: [aten.quantile(t, q, 1, interpolation=how)], x)
    for shape, dim in (((30, 3), 0), ((7,), None), ((), None), ((1,), 0)):
        x = aten.tensor(RNG.standard_normal(shape).astype(dtype))
        for keepdim in (False, True):
            same(lambda t, dim=dim, k=keepdim: [aten.quantile(t, 0.4, dim, k)], x)
    if dtype == "float64":  # of rows that no program holds
        same(lambda t: [aten.quantile(t, 0.4, 0)], aten.tensor(RNG.standard_normal(2100)))
