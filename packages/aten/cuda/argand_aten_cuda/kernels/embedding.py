"""The dense gradient of an embedding's table."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.kernels._accumulate import report, widen


@triton.jit
def embedding_count(index, counts, count, rows, BLOCK: tl.constexpr):
    """counts[row] += how often `index` names it."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.load(index + at, mask=at < count, other=-1)
    tl.atomic_add(counts + i, 1, mask=(i >= 0) & (i < rows), sem="relaxed")


@triton.jit
def embedding_backward_add(
    grad, index, counts, out, error, op, count, n, rows, padding,
    BY_COUNT: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """out[index[i]] += grad[i] by atomics; the order of additions, hence the last bits, may differ between runs. Grid: (tiles of count, tiles of n)."""
    at = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    i = tl.load(index + at, mask=at < count, other=padding)
    keep = (at < count) & (i != padding)
    good = (i >= 0) & (i < rows)
    report(i, keep & ~good, error, op, rows.to(tl.int64) << 6)
    keep = keep & good
    inside = keep[:, None] & (column[None, :] < n)
    g = widen(
        tl.load(grad + at[:, None].to(tl.int64) * n + column[None, :], mask=inside, other=0.0)
    )
    if BY_COUNT:
        g = g / tl.load(counts + i, mask=keep, other=1).to(g.dtype)[:, None]
    tl.atomic_add(out + i[:, None] * n + column[None, :], g, mask=inside, sem="relaxed")


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


_T = {"T": ["float32", "bfloat16", "float16", "float64"]}
_REPORT = {"error": "*i64", "op": "i64"}
_SIZES = {"count": "i32", "n": "i32", "rows": "i32", "padding": "i64"}

KERNELS = [
    Kernel(embedding_count, {"index": "*i64", "counts": "*i32", "count": "i32", "rows": "i32"}, {}, {"BLOCK": [256]}),
    Kernel(
        embedding_backward_add, {"grad": "*T", "index": "*i64", "counts": "*i32", "out": "*A", **_REPORT, **_SIZES}, {**_T, "A": ["float32", "float64"]},
        {"BY_COUNT": [0, 1], "BLOCK_R": [4], "BLOCK": [256]}, {"A": ["float32"]}, divisible=("grad", "out"),
    ),
    Kernel(
        embedding_backward_runs, {"grad": "*T", "index": "*i64", "order": "*i64", "out": "*T", **_REPORT, **_SIZES}, _T,
        {"BY_COUNT": [0, 1], "BLOCK": [256]}, divisible=("grad", "out"),
    ),
]  # fmt: skip
