"""Kernels whose results are positions or counts: nonzero, searchsorted, bincount, histc."""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import FLOATING, REAL, Kernel, Variant
from argand_aten_cuda.kernels._accumulate import widen
from argand_aten_cuda.kernels._digits import DIGITS, digit_counts
from argand_aten_cuda.math import argand_div


@triton.jit
def _nonzero_flags(x, total, keep, BLOCK: tl.constexpr, ALIGNED: tl.constexpr):
    first = tl.program_id(0).to(total.dtype) * BLOCK
    e = first + tl.arange(0, BLOCK)
    if ALIGNED and first + BLOCK <= total:  # without a mask the loads are wide
        bits = tl.load(x + e)
    else:
        bits = tl.load(x + e, mask=e < total, other=0)
    return e, ((bits & keep.to(bits.dtype)) != 0).to(tl.int32)


@triton.jit
def nonzero_count(counts, x, total, keep, BLOCK: tl.constexpr, ALIGNED: tl.constexpr):
    """How many elements of each block are not zero; `keep` masks the sign bit of floats, so that -0.0 is zero. ALIGNED: x is, to 16 bytes."""
    e, flags = _nonzero_flags(x, total, keep, BLOCK, ALIGNED)
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
def _starts(x, n, BLOCK: tl.constexpr, ALIGNED: tl.constexpr):
    """Elements, and ones where they differ from the one before them."""
    first = tl.program_id(0).to(n.dtype) * BLOCK
    e = first + tl.arange(0, BLOCK)
    if ALIGNED and first + BLOCK <= n:
        value = tl.load(x + e)
    else:
        value = tl.load(x + e, mask=e < n, other=0)
    before = tl.load(x + e - 1, mask=(e > 0) & (e < n), other=0)
    return value, ((e == 0) | ((e < n) & (value != before))).to(tl.int32)


@triton.jit
def distinct_count(counts, x, n, BLOCK: tl.constexpr, ALIGNED: tl.constexpr):
    """How many runs of equal elements begin in each block; n is above 0. ALIGNED: as above."""
    _, flags = _starts(x, n, BLOCK, ALIGNED)
    tl.store(counts + tl.program_id(0), tl.sum(flags, 0))


@triton.jit
def distinct_write(out, x, sums, n, BLOCK: tl.constexpr, ALIGNED: tl.constexpr):
    """The first element of each run."""
    value, flags = _starts(x, n, BLOCK, ALIGNED)
    row = tl.load(sums + tl.program_id(0)) + tl.cumsum(flags, 0) - 1
    tl.store(out + row, value, mask=flags == 1)


@triton.jit
def _store_coordinate(to, rest, n, found, LAST: tl.constexpr):
    """Stores a place's index along a dimension of size n, the LAST one's without a division; returns the place's rest."""
    if LAST:
        tl.store(to, rest.to(tl.int64), mask=found)
        return rest
    else:
        outer = rest // n
        tl.store(to, (rest - outer * n).to(tl.int64), mask=found)
        return outer


@triton.jit
def nonzero_write(
    out, x, sums, total, keep, count, column, d, n0, n1, n2, n3, DIMS: tl.constexpr, WHOLE: tl.constexpr, BLOCK: tl.constexpr, ALIGNED: tl.constexpr
):  # fmt: skip
    """Coordinates of the `count` elements that are not zero, column by column: DIMS ones backwards from `column`, of dimensions' sizes n0 to n3.

    An index along the first of these takes d elements. WHOLE: these are all columns, and d is 1.
    """
    e, flags = _nonzero_flags(x, total, keep, BLOCK, ALIGNED)
    found = flags == 1
    row = tl.load(sums + tl.program_id(0)) + tl.cumsum(flags, 0) - 1
    to = out + column * count + row
    rest = e
    if not WHOLE:
        rest = e // d
    rest = _store_coordinate(to, rest, n0, found, WHOLE and DIMS == 1)
    if DIMS > 1:
        rest = _store_coordinate(to - count, rest, n1, found, WHOLE and DIMS == 2)
    if DIMS > 2:
        rest = _store_coordinate(to - 2 * count, rest, n2, found, WHOLE and DIMS == 3)
    if DIMS > 3:
        rest = _store_coordinate(to - 3 * count, rest, n3, found, WHOLE)


@triton.jit
def _before(a, b):
    """a < b with NaN above all."""
    if a.dtype.is_floating():
        before = (a < b) | ((b != b) & (a == a))
    else:
        before = a < b
    return before


@triton.jit
def _comes_before(at, v, RIGHT: tl.constexpr, live):
    """Whether the element at an address is before where v belongs."""
    s = tl.load(at, mask=live, other=0)
    if RIGHT:
        return _before(v, s) == 0
    else:
        return _before(s, v)


@triton.jit
def searchsorted(
    out, sequence, values, total, n, row, RIGHT: tl.constexpr, SHARED: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Where each value belongs in its sequence of n: sequence i serves `row` values, or the only one all (SHARED); RIGHT: behind equal elements."""
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = e < total
    v = tl.load(values + e, mask=live, other=0)
    base = sequence
    if not SHARED:
        base += (e // row) * n
    inside = live & (n > 0)
    # The place is one of the `left` ones from `place` on, or behind them.
    place = tl.zeros([BLOCK], n.dtype)
    left = n
    while left > 1:
        half = left // 2
        further = _comes_before(base + (place + (half - 1)), v, RIGHT, inside)
        place = tl.where(further, place + half, place)
        left -= half
    further = inside & _comes_before(base + place, v, RIGHT, inside)
    tl.store(out + e, tl.where(further, place + 1, place).to(out.dtype.element_ty), mask=live)


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


@triton.jit
def count_in_bins(out, x, low, high, total, bins, BLOCK: tl.constexpr, FEW: tl.constexpr):
    """Adds to `out` how many elements lie in each of `bins` parts (FEW: at most 256) of the range from `low` to `high`."""
    first = widen(tl.load(low))
    last = widen(tl.load(high))
    parts = bins.to(first.dtype)
    # Rounded as the CPU's (csrc/kernels/cpu/search.cc).
    half = tl.where(tl.abs(last - first) < float("inf"), 1.0, 0.5).to(first.dtype)
    begin = first * half
    width = last * half - begin
    fits = tl.abs(width * parts) < float("inf")
    before = tl.where(fits, parts, 1.0).to(first.dtype)
    after = tl.where(fits, 1.0, parts).to(first.dtype)
    lane = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.int32)
    for start in range(
        tl.program_id(0).to(tl.int64) * BLOCK, total, tl.num_programs(0).to(tl.int64) * BLOCK
    ):
        e = start + lane
        value = widen(tl.load(x + e, mask=e < total, other=float("nan")))
        inside = (value >= first) & (value <= last)
        at = argand_div((value * half - begin) * before, width + tl.zeros([BLOCK], first.dtype))
        at = tl.where(inside, at, 0.0) * after
        if FEW:
            sums += digit_counts(tl.where(inside, tl.minimum(at.to(tl.int32), bins.to(tl.int32) - 1), DIGITS), BLOCK)  # fmt: skip
        else:
            at = tl.minimum(at.to(tl.int64), bins - 1)
            tl.atomic_add(out + at, tl.full([BLOCK], 1, tl.int64), mask=inside, sem="relaxed")
    if FEW:
        tl.atomic_add(out + lane, sums.to(tl.int64), mask=(lane < bins) & (sums > 0), sem="relaxed")


_OFFSETS = ["int32", "int64"]
_SIZES = ["int8", "int32", "int16", "int64"]
_COUNT = {"counts": "*i32", "x": "*T", "total": "I", "keep": "i64"}
_WRITE = {
    "out": "*i64",
    "x": "*T",
    "sums": "*i64",
    "total": "I",
    "keep": "i64",
    "count": "i64",
    "column": "i32",
}
_DIMS = dict.fromkeys(("d", "n0", "n1", "n2", "n3"), "I")
_SEARCH = {
    "out": "*O",
    "sequence": "*T",
    "values": "*T",
    "total": "i64",
    "n": "I",
    "row": "i64",
}


def _aligned(v: Variant) -> tuple[str, ...]:
    return ("x",) if v["ALIGNED"] else ()


KERNELS = [
    Kernel(
        nonzero_count,
        signature=_COUNT,
        types={"T": _SIZES, "I": _OFFSETS},
        constants={"BLOCK": [4096], "ALIGNED": [False, True]},
        default={"T": ["int8", "int32"]},
        num_warps=8,
        divisible=_aligned,
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
        types={"T": _SIZES, "I": _OFFSETS},
        constants={
            "DIMS": [1, 2, 3, 4],
            "WHOLE": [False, True],
            "BLOCK": [4096],
            "ALIGNED": [False, True],
        },
        default={"T": ["int8", "int32"]},
        num_warps=8,
        divisible=_aligned,
        wheel=lambda v: v["T"] == "int8" and v["WHOLE"] and v["DIMS"] < 3,
    ),
    Kernel(
        distinct_count,
        signature={"counts": "*i32", "x": "*T", "n": "I"},
        types={"T": REAL, "I": _OFFSETS},
        constants={"BLOCK": [4096], "ALIGNED": [False, True]},
        default={"T": ["float32", "int64"]},
        num_warps=8,
        divisible=_aligned,
    ),
    Kernel(
        distinct_write,
        signature={"out": "*T", "x": "*T", "sums": "*i64", "n": "I"},
        types={"T": REAL, "I": _OFFSETS},
        constants={"BLOCK": [4096], "ALIGNED": [False, True]},
        default={"T": ["float32", "int64"]},
        num_warps=8,
        divisible=_aligned,
    ),
    Kernel(
        searchsorted,
        signature=_SEARCH,
        types={"T": REAL, "O": ["int64", "int32"], "I": ["int32", "int64"]},
        constants={"RIGHT": [False, True], "SHARED": [True, False], "BLOCK": [1024]},
        default={"T": ["float32", "int64"]},
    ),
    Kernel(
        bincount_small,
        signature={"out": "*i64", "x": "*i64", "total": "i64", "bins": "i32"},
        constants={"BLOCK": [1024], "BINS": [256]},
    ),
    Kernel(
        count_in_bins,
        signature={
            "out": "*i64",
            "x": "*T",
            "low": "*T",
            "high": "*T",
            "total": "i64",
            "bins": "i64",
        },
        types={"T": FLOATING},
        constants={"BLOCK": [4096], "FEW": [True, False]},
        default={"T": ["float32"]},
        num_warps=8,
    ),
]
