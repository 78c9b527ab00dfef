"""Kernels whose results are positions or counts: nonzero, searchsorted, bincount."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel


@triton.jit
def _nonzero_flags(x, total, keep, BLOCK: tl.constexpr):
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(x + e, mask=e < total, other=0)
    return e, ((bits & keep.to(bits.dtype)) != 0).to(tl.int32)


@triton.jit
def nonzero_count(counts, x, total, keep, BLOCK: tl.constexpr):
    """How many elements of each block are not zero; `keep` masks the sign bit of floats, so that -0.0 is zero."""
    e, flags = _nonzero_flags(x, total, keep, BLOCK)
    tl.store(counts + tl.program_id(0), tl.sum(flags, 0))


@triton.jit
def exclusive_sums(sums, counts, n, BLOCK: tl.constexpr):
    """sums[i] = counts[0] + ... + counts[i - 1] for i in 0..n, in one program."""
    tl.store(sums, tl.zeros([], tl.int64))
    total = tl.zeros([], tl.int64)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        c = tl.load(counts + i, mask=i < n, other=0).to(tl.int64)
        tl.store(sums + 1 + i, total + tl.cumsum(c, 0), mask=i < n)
        total += tl.sum(c, 0)


@triton.jit
def nonzero_write(
    out, x, sums, total, keep, width, column, d0, d1, d2, d3, n0, n1, n2, n3, DIMS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Coordinates of the elements that are not zero, DIMS of `width` columns from `column` on: (place // d) % n."""
    e, flags = _nonzero_flags(x, total, keep, BLOCK)
    row = tl.load(sums + tl.program_id(0)) + tl.cumsum(flags, 0) - 1
    to = out + row * width + column
    tl.store(to, (e // d0) % n0, mask=flags == 1)
    if DIMS > 1:
        tl.store(to + 1, (e // d1) % n1, mask=flags == 1)
    if DIMS > 2:
        tl.store(to + 2, (e // d2) % n2, mask=flags == 1)
    if DIMS > 3:
        tl.store(to + 3, (e // d3) % n3, mask=flags == 1)


@triton.jit
def _before(a, b):
    """a < b with NaN above all."""
    if a.dtype.is_floating():
        before = (a < b) | ((b != b) & (a == a))
    else:
        before = a < b
    return before


@triton.jit
def searchsorted(
    out, sequence, values, total, n, row, steps, RIGHT: tl.constexpr, BLOCK: tl.constexpr
):
    """Where each value belongs in its sequence of n: sequence i serves `row` values; RIGHT: behind equal elements."""
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = e < total
    v = tl.load(values + e, mask=live, other=0)
    base = sequence + (e // row) * n
    low = tl.zeros([BLOCK], tl.int64)
    high = low + n
    for _ in range(steps):
        searching = live & (low < high)
        middle = (low + high) // 2
        s = tl.load(base + middle, mask=searching, other=0)
        if RIGHT:
            further = ~_before(v, s)
        else:
            further = _before(s, v)
        low = tl.where(searching & further, middle + 1, low)
        high = tl.where(searching & ~further, middle, high)
    tl.store(out + e, low.to(out.dtype.element_ty), mask=live)


@triton.jit
def bincount_small(out, x, total, bins, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Adds the counts of int64 elements in [0, bins) to `out`; a program counts BLOCK elements at a time, then adds its sums."""
    b = tl.arange(0, BINS)
    sums = tl.zeros([BINS], tl.int32)
    for start in range(
        tl.program_id(0).to(tl.int64) * BLOCK, total, tl.num_programs(0).to(tl.int64) * BLOCK
    ):
        e = start + tl.arange(0, BLOCK)
        sums += tl.histogram(
            tl.load(x + e, mask=e < total, other=0).to(tl.int32), BINS, mask=e < total
        )
    tl.atomic_add(out + b, sums.to(tl.int64), mask=(b < bins) & (sums > 0), sem="relaxed")


_SIZES = ["int8", "int32", "int16", "int64"]
_REAL = ["float32", "int64", "bfloat16", "float64", "int32", "float16", "int16", "int8", "uint8"]
_COUNT = {"counts": "*i32", "x": "*T", "total": "i64", "keep": "i64"}
_WRITE = {
    "out": "*i64",
    "x": "*T",
    "sums": "*i64",
    "total": "i64",
    "keep": "i64",
    "width": "i32",
    "column": "i32",
}
_DIMS = {
    "d0": "i64",
    "d1": "i64",
    "d2": "i64",
    "d3": "i64",
    "n0": "i64",
    "n1": "i64",
    "n2": "i64",
    "n3": "i64",
}
_SEARCH = {
    "out": "*O",
    "sequence": "*T",
    "values": "*T",
    "total": "i64",
    "n": "i64",
    "row": "i64",
    "steps": "i32",
}

KERNELS = [
    Kernel(
        nonzero_count,
        signature=_COUNT,
        types={"T": _SIZES},
        constants={"BLOCK": [4096]},
        default={"T": ["int8", "int32"]},
        num_warps=8,
    ),
    Kernel(
        exclusive_sums,
        signature={"sums": "*i64", "counts": "*i32", "n": "i32"},
        constants={"BLOCK": [4096]},
        num_warps=8,
    ),
    Kernel(
        nonzero_write,
        signature={**_WRITE, **_DIMS},
        types={"T": _SIZES},
        constants={"DIMS": [1, 2, 3, 4], "BLOCK": [4096]},
        default={"T": ["int8", "int32"]},
        num_warps=8,
    ),
    Kernel(
        searchsorted,
        signature=_SEARCH,
        types={"T": _REAL, "O": ["int64", "int32"]},
        constants={"RIGHT": [False, True], "BLOCK": [256]},
        default={"T": ["float32", "int64"]},
    ),
    Kernel(
        bincount_small,
        signature={"out": "*i64", "x": "*i64", "total": "i64", "bins": "i32"},
        constants={"BLOCK": [1024], "BINS": [256]},
    ),
]
