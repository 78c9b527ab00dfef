"""The dense gradient of an embedding's table, and sums of its rows by bags."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.kernels._accumulate import report, widen


@triton.jit
def embedding_backward_runs(
    grad,
    index,
    order,
    out,
    error,
    op,
    count,
    n,
    rows,
    padding,
    BY_COUNT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """out[i] = the sum of grad[order[j]] over the run of equal index[j] == i, in order: always the same bits. index is sorted, stably, by `order`; grid: (count, tiles of n)."""
    first = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    i = tl.load(index + first)
    before = tl.load(index + tl.maximum(first - 1, 0))
    good = (i >= 0) & (i < rows)
    report(i, (i != padding) & ~good, error, op, rows.to(tl.int64) << 6)
    if ((first == 0) | (before != i)) & (i != padding) & good:
        acc = widen(tl.zeros([BLOCK], grad.dtype.element_ty))
        at = first
        same = i
        while same == i:
            source = tl.load(order + at)
            acc += widen(tl.load(grad + source * n + column, mask=column < n, other=0.0))
            at += 1
            same = tl.load(index + at, mask=at < count, other=-1)
        if BY_COUNT:
            acc = acc / (at - first).to(acc.dtype)
        tl.store(out + i * n + column, acc.to(out.dtype.element_ty), mask=column < n)


@triton.jit
def bag_sums(
    out, weight, index, bag_of, error, op, count, n, rows,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr,
):  # fmt: skip
    """out[b] = the sum of weight[index[j]] over the run of bag_of[j] == b, ROWS at a time: always the same bits. bag_of does not decrease; n is a multiple of ALIGN; grid: (bags, tiles of n)."""
    bag = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first = count - count
    end = count
    while first < end:
        middle = first + (end - first) // 2
        if tl.load(bag_of + middle) < bag:
            first = middle + 1
        else:
            end = middle
    acc = tl.zeros([ROWS, BLOCK], out.dtype.element_ty)
    line = tl.arange(0, ROWS)
    more = first < count
    while more:
        j = first + line
        taken = tl.load(bag_of + j, mask=j < count, other=-1) == bag
        i = tl.load(index + j, mask=taken, other=0)
        good = (i >= 0) & (i < rows)
        report(i, taken & ~good, error, op, rows.to(tl.int64) << 6)
        at = i[:, None] * n + column[None, :]
        inside = (taken & good)[:, None] & (column < n)[None, :]
        acc += tl.load(weight + at, mask=inside, other=0.0).to(acc.dtype)
        first += ROWS
        more = (first < count) & (tl.min(taken.to(tl.int32), 0) != 0)
    tl.store(out + bag.to(tl.int64) * n + column, tl.sum(acc, 0), mask=column < n)


_T = {"T": ["float32", "bfloat16", "float16", "float64"]}
_REPORT = {"error": "*i64", "op": "i64"}
_SIZES = {"count": "i32", "n": "i32", "rows": "i32", "padding": "i64"}

KERNELS = [
    Kernel(
        embedding_backward_runs, {"grad": "*T", "index": "*i64", "order": "*i64", "out": "*T", **_REPORT, **_SIZES}, _T,
        {"BY_COUNT": [0, 1], "BLOCK": [256]}, divisible=("grad", "out"),
    ),
    Kernel(
        bag_sums, {"out": "*A", "weight": "*T", "index": "*i64", "bag_of": "*i64", **_REPORT, "count": "i32", "n": "i32", "rows": "i32"}, {**_T, "A": ["float32", "float64"]},
        {"ROWS": [8], "BLOCK": [256, 1024], "ALIGN": [1, 16]}, {"A": ["float32"]},
        num_warps=lambda v: 8 if v["BLOCK"] == 1024 else 4, divisible=lambda v: ("out", "weight", "n") if v["ALIGN"] == 16 else ("out", "weight"),
    ),
]  # fmt: skip
