"""softmax, log_softmax and their gradients. Rows that fit stay in registers; longer ones are read twice (the second time from the L2 cache);
`*_columns` work along a dim that is not the last, on (outer, n, inner) data. Maxima skip NaNs, which come back through exp.
The length of what is contiguous (n, or inner) is given in units of ALIGN: 16 tells the compiler that rows are aligned, 4 that short ones are to four elements."""

from collections.abc import Mapping
from typing import Any

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.kernels._accumulate import widen


@triton.jit
def softmax_forward(
    x, y, rows, n, LOG: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, ALIGN: tl.constexpr
):
    """Grid: tiles of ROWS rows; n <= BLOCK."""
    n = n * ALIGN
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row[:, None] < rows) & (column[None, :] < n)
    at = row[:, None].to(tl.int64) * n + column[None, :]
    value = widen(tl.load(x + at, mask=inside, other=float("-inf")))
    value -= tl.max(value, 1)[:, None]
    e = tl.exp(value)
    total = tl.sum(e, 1)
    if LOG:
        result = value - tl.log(total)[:, None]
    else:
        result = e / total[:, None]
    tl.store(y + at, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def fold(top, total, value):
    """The running maximum and the sum of exp(x - maximum) of each lane with one more value; a lane that has seen only -inf has sum 0."""
    new = tl.maximum(top, value)
    shift = tl.where(new == float("-inf"), 0.0, new)
    return new, total * tl.exp(top - shift) + tl.exp(value - shift)


@triton.jit
def softmax_forward_long(x, y, n, LOG: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr):
    """Grid: rows."""
    n = n * ALIGN
    x += tl.program_id(0).to(tl.int64) * n
    y += tl.program_id(0).to(tl.int64) * n
    top = widen(tl.zeros([BLOCK], x.dtype.element_ty)) - float("inf")
    total = tl.zeros_like(top)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        top, total = fold(
            top, total, widen(tl.load(x + column, mask=column < n, other=float("-inf")))
        )
    highest = tl.max(top, 0)
    total = tl.sum(total * tl.exp(tl.where(top == float("-inf"), highest, top) - highest), 0)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        value = (
            widen(tl.load(x + column, mask=column < n, other=0.0, eviction_policy="evict_first"))
            - highest
        )
        if LOG:
            value -= tl.log(total)
        else:
            value = tl.exp(value) / total
        tl.store(y + column, value.to(y.dtype.element_ty), mask=column < n)


@triton.jit
def softmax_forward_columns(
    x,
    y,
    n,
    inner,
    LOG: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_I: tl.constexpr,
    ALIGN: tl.constexpr,
):
    """Grid: outer * tiles of inner."""
    inner = inner * ALIGN
    tiles = tl.cdiv(inner, BLOCK_I)
    base = (tl.program_id(0) // tiles).to(tl.int64) * n * inner
    column = tl.program_id(0) % tiles * BLOCK_I + tl.arange(0, BLOCK_I)
    top = widen(tl.zeros([BLOCK_N, BLOCK_I], x.dtype.element_ty)) - float("inf")
    total = tl.zeros_like(top)
    for start in range(0, n, BLOCK_N):
        row = start + tl.arange(0, BLOCK_N)
        inside = (row[:, None] < n) & (column[None, :] < inner)
        at = base + row[:, None].to(tl.int64) * inner + column[None, :]
        top, total = fold(top, total, widen(tl.load(x + at, mask=inside, other=float("-inf"))))
    highest = tl.max(top, 0)
    total = tl.sum(
        total * tl.exp(tl.where(top == float("-inf"), highest[None, :], top) - highest[None, :]), 0
    )
    for start in range(0, n, BLOCK_N):
        row = start + tl.arange(0, BLOCK_N)
        inside = (row[:, None] < n) & (column[None, :] < inner)
        at = base + row[:, None].to(tl.int64) * inner + column[None, :]
        value = widen(tl.load(x + at, mask=inside, other=0.0)) - highest[None, :]
        if LOG:
            value -= tl.log(total)[None, :]
        else:
            value = tl.exp(value) / total[None, :]
        tl.store(y + at, value.to(y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_backward(
    grad,
    y,
    dx,
    rows,
    n,
    LOG: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    ALIGN: tl.constexpr,
):
    n = n * ALIGN
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    inside = (row[:, None] < rows) & (column[None, :] < n)
    at = row[:, None].to(tl.int64) * n + column[None, :]
    g = widen(tl.load(grad + at, mask=inside, other=0.0))
    value = widen(tl.load(y + at, mask=inside, other=0.0))
    if LOG:
        result = g - tl.exp(value) * tl.sum(g, 1)[:, None]
    else:
        result = value * (g - tl.sum(g * value, 1)[:, None])
    tl.store(dx + at, result.to(dx.dtype.element_ty), mask=inside)


@triton.jit
def softmax_backward_long(
    grad, y, dx, n, LOG: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr
):
    n = n * ALIGN
    base = tl.program_id(0).to(tl.int64) * n
    acc = widen(tl.zeros([BLOCK], y.dtype.element_ty))
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        g = widen(tl.load(grad + base + column, mask=column < n, other=0.0))
        if not LOG:
            g *= widen(tl.load(y + base + column, mask=column < n, other=0.0))
        acc += g
    total = tl.sum(acc, 0)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        g = widen(
            tl.load(grad + base + column, mask=column < n, other=0.0, eviction_policy="evict_first")
        )
        value = widen(
            tl.load(y + base + column, mask=column < n, other=0.0, eviction_policy="evict_first")
        )
        if LOG:
            result = g - tl.exp(value) * total
        else:
            result = value * (g - total)
        tl.store(dx + base + column, result.to(dx.dtype.element_ty), mask=column < n)


@triton.jit
def softmax_backward_columns(
    grad,
    y,
    dx,
    n,
    inner,
    LOG: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_I: tl.constexpr,
    ALIGN: tl.constexpr,
):
    inner = inner * ALIGN
    tiles = tl.cdiv(inner, BLOCK_I)
    base = (tl.program_id(0) // tiles).to(tl.int64) * n * inner
    column = tl.program_id(0) % tiles * BLOCK_I + tl.arange(0, BLOCK_I)
    acc = widen(tl.zeros([BLOCK_N, BLOCK_I], y.dtype.element_ty))
    for start in range(0, n, BLOCK_N):
        row = start + tl.arange(0, BLOCK_N)
        inside = (row[:, None] < n) & (column[None, :] < inner)
        at = base + row[:, None].to(tl.int64) * inner + column[None, :]
        g = widen(tl.load(grad + at, mask=inside, other=0.0))
        if not LOG:
            g *= widen(tl.load(y + at, mask=inside, other=0.0))
        acc += g
    total = tl.sum(acc, 0)[None, :]
    for start in range(0, n, BLOCK_N):
        row = start + tl.arange(0, BLOCK_N)
        inside = (row[:, None] < n) & (column[None, :] < inner)
        at = base + row[:, None].to(tl.int64) * inner + column[None, :]
        g = widen(tl.load(grad + at, mask=inside, other=0.0))
        value = widen(tl.load(y + at, mask=inside, other=0.0))
        if LOG:
            result = g - tl.exp(value) * total
        else:
            result = value * (g - total)
        tl.store(dx + at, result.to(dx.dtype.element_ty), mask=inside)


_T = {"T": ["float32", "bfloat16", "float16", "float64"]}
_FORWARD = {"x": "*T", "y": "*T"}
_BACKWARD = {"grad": "*T", "y": "*T", "dx": "*T"}
_FIT = {
    "LOG": [0, 1],
    "BLOCK": [8, 16, 32, 64, 128, 256, 1024, 2048, 4096, 8192],
    "ROWS": [1, 8, 16, 32, 64, 128, 256],
    "ALIGN": [1, 4, 16],
}
_LONG = {"LOG": [0, 1], "BLOCK": [8192, 16384], "ALIGN": [1, 16]}
_COLUMNS = {"LOG": [0, 1], "BLOCK_N": [16], "BLOCK_I": [64], "ALIGN": [1, 16]}


def _warps(v: Mapping[str, Any]) -> int:
    block: int = v["BLOCK"]
    return 4 if block < 1024 else max(2, block // 512)


def _wheel(v: Mapping[str, Any]) -> bool:
    rows = 2048 // v["BLOCK"] if v["BLOCK"] < 1024 else 1
    return bool(
        v["ROWS"] == rows
        and (v["BLOCK"] >= 16 if v["ALIGN"] == 16 else v["BLOCK"] <= 1024)
        and (v["ALIGN"] != 4 or v["BLOCK"] <= 256)
    )


def _long(v: Mapping[str, Any]) -> bool:
    return bool(v["BLOCK"] == (16384 if v["T"] == "float32" else 8192))


KERNELS = [
    Kernel(f, {**pointers, "rows": "i32", "n": "i32"}, _T, _FIT, num_warps=_warps, divisible=tuple(pointers), wheel=_wheel)
    for f, pointers in ((softmax_forward, _FORWARD), (softmax_backward, _BACKWARD))
]  # fmt: skip
# 32 warps and large blocks: one program keeps a multiprocessor busy, so that the rows being read fit the L2 cache.
KERNELS += [
    Kernel(
        softmax_forward_long, {**_FORWARD, "n": "i32"}, _T, _LONG,
        num_warps=lambda v: 32 if v["T"] == "float32" else 8, divisible=tuple(_FORWARD), wheel=_long,
    ),
    Kernel(softmax_backward_long, {**_BACKWARD, "n": "i32"}, _T, _LONG, num_warps=32, divisible=tuple(_BACKWARD), wheel=_long),
]  # fmt: skip
KERNELS += [
    Kernel(
        f,
        {**pointers, "n": "i32", "inner": "i32"},
        _T,
        _COLUMNS,
        divisible=tuple(pointers),
        wheel=lambda v: False,
    )
    for f, pointers in ((softmax_forward_columns, _FORWARD), (softmax_backward_columns, _BACKWARD))
]
