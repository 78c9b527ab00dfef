"""Layer and RMS normalisation of rows, with gradients. Statistics are float32 (float64 for float64).

The sums over rows for the gradients of weight and bias are made in two steps, without atomics: each program adds up its
rows in registers and stores partial[2, programs, n]; `sum_partials` adds those in a fixed order.
n is given in units of ALIGN: 16 tells the compiler that rows are aligned."""

from collections.abc import Mapping
from typing import Any

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.kernels._accumulate import widen


@triton.jit
def inverse_root(x, eps):
    variance = x + tl.cast(eps, x.dtype)
    if x.dtype == tl.float64:
        return 1.0 / tl.sqrt(variance)
    else:
        return 1.0 / tl.sqrt_rn(variance)


@triton.jit
def norm_forward(
    x, w, b, y, mean, rstd, rows, n, eps,
    RMS: tl.constexpr, HAS_W: tl.constexpr, HAS_B: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    ALIGN: tl.constexpr,
):  # fmt: skip
    """Grid: tiles of ROWS rows; n <= BLOCK."""
    n = n * ALIGN
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row[:, None] < rows) & (column[None, :] < n)
    at = row[:, None].to(tl.int64) * n + column[None, :]
    value = widen(tl.load(x + at, mask=inside, other=0.0))
    if not RMS:
        m = tl.sum(value, 1) / n
        value = tl.where(inside, value - m[:, None], 0.0)
        tl.store(mean + row, m, mask=row < rows)
    r = inverse_root(tl.sum(value * value, 1) / n, eps)
    tl.store(rstd + row, r, mask=row < rows)
    value *= r[:, None]
    if HAS_W:
        value *= widen(tl.load(w + column, mask=column < n, other=0.0))[None, :]
    if HAS_B:
        value += widen(tl.load(b + column, mask=column < n, other=0.0))[None, :]
    tl.store(y + at, value.to(y.dtype.element_ty), mask=inside)


@triton.jit
def norm_forward_long(
    x, w, b, y, mean, rstd, n, eps,
    RMS: tl.constexpr, HAS_W: tl.constexpr, HAS_B: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """Grid: rows."""
    n = n * ALIGN
    row = tl.program_id(0)
    x += row.to(tl.int64) * n
    y += row.to(tl.int64) * n
    acc = widen(tl.zeros([BLOCK], x.dtype.element_ty))
    m = tl.sum(acc, 0)
    if not RMS:
        for start in range(0, n, BLOCK):
            column = start + tl.arange(0, BLOCK)
            acc += widen(tl.load(x + column, mask=column < n, other=0.0))
        m = tl.sum(acc, 0) / n
        tl.store(mean + row, m)
    acc = widen(tl.zeros([BLOCK], x.dtype.element_ty))
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        d = tl.where(column < n, widen(tl.load(x + column, mask=column < n, other=0.0)) - m, 0.0)
        acc += d * d
    r = inverse_root(tl.sum(acc, 0) / n, eps)
    tl.store(rstd + row, r)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = (
            widen(tl.load(x + column, mask=column < n, other=0.0, eviction_policy="evict_first"))
            - m
        ) * r
        if HAS_W:
            value *= widen(tl.load(w + column, mask=column < n, other=0.0))
        if HAS_B:
            value += widen(tl.load(b + column, mask=column < n, other=0.0))
        tl.store(y + column, value.to(y.dtype.element_ty), mask=column < n)


@triton.jit
def norm_backward(
    grad, x, w, mean, rstd, dx, partial, rows, n,
    RMS: tl.constexpr, HAS_W: tl.constexpr, PARTIAL: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    ALIGN: tl.constexpr,
):  # fmt: skip
    """Every row's gradient, and (PARTIAL) this program's sums for weight and bias; grid: any number of programs; n <= BLOCK."""
    n = n * ALIGN
    column = tl.arange(0, BLOCK)
    acc_w = widen(tl.zeros([ROWS, BLOCK], x.dtype.element_ty))
    acc_b = acc_w
    if HAS_W:
        weight = widen(tl.load(w + column, mask=column < n, other=0.0))[None, :]
    for first in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (column[None, :] < n)
        at = row[:, None].to(tl.int64) * n + column[None, :]
        dy = widen(tl.load(grad + at, mask=inside, other=0.0))
        value = widen(tl.load(x + at, mask=inside, other=0.0))
        r = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        if RMS:
            value *= r
        else:
            value = tl.where(
                inside, (value - tl.load(mean + row, mask=row < rows, other=0.0)[:, None]) * r, 0.0
            )
        if PARTIAL:
            acc_w += dy * value
            if not RMS:
                acc_b += dy
        if HAS_W:
            dy *= weight
        result = dy - value * (tl.sum(dy * value, 1) / n)[:, None]
        if not RMS:
            result -= (tl.sum(dy, 1) / n)[:, None]
        tl.store(dx + at, (result * r).to(dx.dtype.element_ty), mask=inside)
    if PARTIAL:
        at = tl.program_id(0).to(tl.int64) * n + column
        tl.store(partial + at, tl.sum(acc_w, 0), mask=column < n)
        if not RMS:
            tl.store(
                partial + tl.num_programs(0).to(tl.int64) * n + at,
                tl.sum(acc_b, 0),
                mask=column < n,
            )


@triton.jit
def norm_backward_long(
    grad,
    x,
    w,
    mean,
    rstd,
    dx,
    n,
    RMS: tl.constexpr,
    HAS_W: tl.constexpr,
    BLOCK: tl.constexpr,
    ALIGN: tl.constexpr,
):
    """A row's gradient; grid: rows."""
    n = n * ALIGN
    row = tl.program_id(0)
    base = row.to(tl.int64) * n
    r = tl.load(rstd + row)
    m = tl.zeros_like(r)
    if not RMS:
        m = tl.load(mean + row)
    acc = widen(tl.zeros([BLOCK], x.dtype.element_ty))
    acc_x = acc
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        dy = widen(tl.load(grad + base + column, mask=column < n, other=0.0))
        value = (widen(tl.load(x + base + column, mask=column < n, other=0.0)) - m) * r
        if HAS_W:
            dy *= widen(tl.load(w + column, mask=column < n, other=0.0))
        acc += dy
        acc_x += dy * value
    center = tl.sum(acc, 0) / n
    slope = tl.sum(acc_x, 0) / n
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        dy = widen(
            tl.load(grad + base + column, mask=column < n, other=0.0, eviction_policy="evict_first")
        )
        value = (
            widen(
                tl.load(
                    x + base + column, mask=column < n, other=0.0, eviction_policy="evict_first"
                )
            )
            - m
        ) * r
        if HAS_W:
            dy *= widen(tl.load(w + column, mask=column < n, other=0.0))
        result = dy - value * slope
        if not RMS:
            result -= center
        tl.store(dx + base + column, (result * r).to(dx.dtype.element_ty), mask=column < n)


@triton.jit
def norm_backward_weight(
    grad, x, mean, rstd, partial, rows, n, rows_each,
    RMS: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """Sums of `rows_each` rows for weight and bias; grid: (tiles of n, parts)."""
    n = n * ALIGN
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc_w = widen(tl.zeros([BLOCK_R, BLOCK], x.dtype.element_ty))
    acc_b = acc_w
    begin = tl.program_id(1) * rows_each
    end = tl.minimum(rows, begin + rows_each)
    for first in range(begin, end, BLOCK_R):
        row = first + tl.arange(0, BLOCK_R)
        inside = (row[:, None] < end) & (column[None, :] < n)
        at = row[:, None].to(tl.int64) * n + column[None, :]
        dy = widen(tl.load(grad + at, mask=inside, other=0.0))
        value = widen(tl.load(x + at, mask=inside, other=0.0))
        r = tl.load(rstd + row, mask=row < end, other=0.0)[:, None]
        if RMS:
            acc_w += dy * value * r
        else:
            acc_w += dy * (value - tl.load(mean + row, mask=row < end, other=0.0)[:, None]) * r
            acc_b += dy
    at = tl.program_id(1).to(tl.int64) * n + column
    tl.store(partial + at, tl.sum(acc_w, 0), mask=column < n)
    if not RMS:
        tl.store(
            partial + tl.num_programs(1).to(tl.int64) * n + at, tl.sum(acc_b, 0), mask=column < n
        )


_T = {
    "T": ["float32", "bfloat16", "float16", "float64"],
    "W": ["float32", "bfloat16", "float16", "float64"],
    "A": ["float32", "float64"],
}
_USUAL = {"A": ["float32"]}
_STATISTICS = {"mean": "*A", "rstd": "*A"}
_FORWARD = {"x": "*T", "w": "*W", "b": "*W", "y": "*T", **_STATISTICS}
_BACKWARD = {"grad": "*T", "x": "*T", "w": "*W", **_STATISTICS, "dx": "*T"}
_FIT = {"BLOCK": [16, 64, 256, 1024, 2048, 4096, 8192], "ROWS": [1, 4, 32, 128], "ALIGN": [1, 16]}
_LONG = {"BLOCK": [4096], "ALIGN": [1, 16]}
_FLAGS = {"RMS": [0, 1], "HAS_W": [0, 1]}


_SEVERAL = {16: 128, 64: 32, 256: 4}  # rows of a program, of up to so many elements


def _wheel(v: Mapping[str, Any]) -> bool:
    """Equal dtypes, all weights (RMS: without a bias), several short rows or a long one at a time; short rows also without weights."""
    if v["HAS_W"]:
        weights = v.get("HAS_B", not v["RMS"]) == (not v["RMS"])
    else:
        weights = v["BLOCK"] <= 256 and not v.get("HAS_B")
    rows = v.get("ROWS", 1) == _SEVERAL.get(v["BLOCK"], 1)
    return bool(
        v["T"] == v["W"]
        and weights
        and rows
        and v.get("PARTIAL", v["HAS_W"]) == v["HAS_W"]
        and (v["ALIGN"] == 16 or v["BLOCK"] <= 1024 or "ROWS" not in v)
    )


def _warps(v: Mapping[str, Any]) -> int:
    block: int = v["BLOCK"]
    return max(4, block // 512)


KERNELS = [
    Kernel(
        norm_forward, {**_FORWARD, "rows": "i32", "n": "i32", "eps": "fp64"}, _T, {**_FLAGS, "HAS_B": [0, 1], **_FIT}, _USUAL,
        num_warps=_warps, divisible=tuple(_FORWARD), wheel=_wheel,
    ),
    Kernel(
        norm_forward_long, {**_FORWARD, "n": "i32", "eps": "fp64"}, _T, {**_FLAGS, "HAS_B": [0, 1], **_LONG}, _USUAL,
        num_warps=8, divisible=tuple(_FORWARD), wheel=_wheel,
    ),
    Kernel(
        norm_backward, {**_BACKWARD, "partial": "*A", "rows": "i32", "n": "i32"}, _T, {**_FLAGS, "PARTIAL": [0, 1], **_FIT}, _USUAL,
        num_warps=_warps, divisible=(*_BACKWARD, "partial"), wheel=_wheel,
    ),
    Kernel(
        norm_backward_long, {**_BACKWARD, "n": "i32"}, _T, {**_FLAGS, **_LONG}, _USUAL,
        num_warps=8, divisible=tuple(_BACKWARD), wheel=_wheel,
    ),
    Kernel(
        norm_backward_weight, {"grad": "*T", "x": "*T", **_STATISTICS, "partial": "*A", "rows": "i32", "n": "i32", "rows_each": "i32"},
        {"T": _T["T"], "A": _T["A"]}, {"RMS": [0, 1], "BLOCK_R": [16], "BLOCK": [64], "ALIGN": [1, 16]}, _USUAL,
        divisible=("grad", "x", "mean", "rstd", "partial"),
    ),
]  # fmt: skip
