"""Variance, and extreme values with their positions, along one dimension of (rows, n) with any strides.

A program takes BR rows; where there are few, `pieces` programs share a row and a second kernel joins their results.
"""

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl

from argand_aten_cuda import reduction
from argand_aten_cuda.conversion import convert
from argand_aten_cuda.kernel import FLOATING, REAL, Kernel, Variant


@triton.jit
def _row_offsets(row, n_inner, outer_stride, inner_stride, UNIT: tl.constexpr):
    if UNIT == 2:
        return row
    elif UNIT == 1:  # without divisions of 64 bits, which take longer than a short row's elements
        return row * inner_stride
    else:
        return (row // n_inner) * outer_stride + (row % n_inner) * inner_stride


@triton.jit
def _whole_rows(
    x, row, rows, n, n_inner, outer_stride, inner_stride, BN: tl.constexpr, UNIT: tl.constexpr, ALIGNED: tl.constexpr
):  # fmt: skip
    """Rows of BN elements at most, which lie side by side, and which elements there are."""
    length = n.to(tl.int32)
    if ALIGNED:
        length = tl.multiple_of(length, 16)
    lane = tl.arange(0, BN)
    inside = (row < rows)[:, None] & (lane < length)[None, :]
    at = _row_offsets(row, n_inner, outer_stride, inner_stride, UNIT)
    return tl.load(x + at[:, None] + lane[None, :], mask=inside, other=0), inside


# ---- variance ------------------------------------------------------------------------------------------------------------
@triton.jit
def _join_moments(n_a, mean_a, m2_a, n_b, mean_b, m2_b):
    """T. Chan, G. Golub, R. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979."""
    n = n_a + n_b
    part = tl.where(n > 0, n_b / tl.where(n > 0, n, 1.0), 0.0)
    delta = mean_b - mean_a
    return n, mean_a + delta * part, m2_a + m2_b + delta * delta * n_a * part


@triton.jit
def _joined(count, mean, m2, d, q, center, taken):
    """Takes in `taken` elements of each row: sums d and q, by lane, of their deviations from `center` and the squares of these."""
    deviation = tl.sum(d, axis=1).to(tl.float64)
    squares = tl.sum(q, axis=1).to(tl.float64)
    new_mean = center.to(tl.float64) + deviation / taken
    return _join_moments(count, mean, m2, taken, new_mean, squares - deviation * deviation / taken)


@triton.jit
def _number(value):
    if value.dtype.is_floating() and value.dtype != tl.float64:
        return value.to(tl.float32)
    else:
        return value


@triton.jit
def _load_numbers(x, at, inside):
    return _number(tl.load(x + at, mask=inside, other=0.0))


@triton.jit
def _quotient(a, b):
    if a.dtype == tl.float64:
        return a / b
    else:
        return tl.div_rn(a, tl.zeros_like(a) + b)


@triton.jit
def _store_variance(out, row, m2, n, divisor, stored):
    value = tl.where(
        divisor > 0,
        _quotient(m2, tl.where(divisor > 0, divisor, 1.0).to(m2.dtype)),
        tl.where(m2 == 0, float("nan"), m2 * float("inf")),
    )
    value = tl.where(n == 0, float("nan"), value)
    tl.store(out + row, convert(value, out.dtype.element_ty), mask=stored)


@triton.jit
def moments(
    x, out, parts, rows, n, n_inner, outer_stride, inner_stride, stride, divisor, piece, pieces,
    BR: tl.constexpr, BN: tl.constexpr, UNIT: tl.constexpr, ALIGNED: tl.constexpr, WHOLE: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """The variance of each row to `out`, or with several pieces its (mean, m2) to parts[2, pieces, rows].

    UNIT: 1 and 3 stride is 1, 2 inner_stride is 1; of 1 and 2 n_inner is the number of rows. ALIGNED: x, n and the strides of rows are multiples of 16, so that
    loads are whole vectors. WHOLE: n is BN at most. STEPS tiles are summed before their sums are joined.
    """
    row = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    if WHOLE:
        value, inside = _whole_rows(
            x, row, rows, n, n_inner, outer_stride, inner_stride, BN, UNIT, ALIGNED
        )
        value = _number(value)
        # What the mean is off by is corrected, so that no numbers but those of the spread are rounded, and equal ones have none.
        number = tl.cast(n, value.dtype)
        d = tl.where(inside, value - (tl.sum(value, axis=1) * (1 / number))[:, None], 0.0)
        d = tl.where(inside, d - _quotient(tl.sum(d, axis=1), number)[:, None], 0.0)
        m2 = tl.sum(d * d, axis=1)
        _store_variance(out, row, m2, n, tl.cast(divisor, value.dtype), row < rows)
        return
    begin = tl.program_id(1).to(tl.int64) * piece
    end = tl.minimum(begin + piece, n)
    if UNIT % 2:
        stride = 1
    at = _row_offsets(row, n_inner, outer_stride, inner_stride, UNIT)
    count = tl.zeros([BR], tl.float64)
    lane = tl.arange(0, BN).to(tl.int64)
    here = (row < rows)[:, None]
    # The first tile's mean is the first center. Its own rounding, and that of later centers, is corrected when sums are joined.
    inside = here & (begin + lane < end)[None, :]
    value = _load_numbers(x, at[:, None] + ((begin + lane) * stride)[None, :], inside)
    center = (tl.sum(value, axis=1) / tl.minimum(end - begin, BN).to(tl.float64)).to(value.dtype)
    d = tl.where(inside, value - center[:, None], 0.0)
    q = d * d
    mean = tl.zeros([BR], tl.float64)
    m2 = tl.zeros([BR], tl.float64)
    first = begin + BN
    start = begin
    while start < end:
        stop = tl.minimum(start + STEPS * BN, end)
        for k in range(first, stop, BN):
            inside = here & (k + lane < end)[None, :]
            value = _load_numbers(x, at[:, None] + ((k + lane) * stride)[None, :], inside)
            off = tl.where(inside, value - center[:, None], 0.0)
            d += off
            q += off * off
        count, mean, m2 = _joined(count, mean, m2, d, q, center, (stop - start).to(tl.float64))
        center = mean.to(center.dtype)
        d = tl.zeros_like(d)
        q = tl.zeros_like(q)
        first = stop
        start = stop
    if pieces == 1:
        _store_variance(out, row, m2, n, divisor, row < rows)
    else:
        slot = parts + tl.program_id(1).to(tl.int64) * rows + row
        tl.store(slot, mean, mask=row < rows)
        tl.store(slot + pieces.to(tl.int64) * rows, m2, mask=row < rows)


@triton.jit
def join_moments(parts, out, rows, n, divisor, piece, pieces, BR: tl.constexpr, BP: tl.constexpr):
    """The variance of each row from the moments of its pieces: their mean first, then what is apart from it."""
    row = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    lane = tl.arange(0, BP).to(tl.int64)
    here = (row < rows)[:, None]
    m2_parts = parts + pieces.to(tl.int64) * rows
    total = tl.zeros([BR], tl.float64)
    for p in range(0, pieces, BP):
        inside = here & (p + lane < pieces)[None, :]
        taken = tl.minimum(n - (p + lane) * piece, piece).to(tl.float64)[None, :]
        mean = tl.load(parts + (p + lane)[None, :] * rows + row[:, None], mask=inside, other=0.0)
        total += tl.sum(tl.where(inside, mean * taken, 0.0), axis=1)
    center = total / n.to(tl.float64)
    m2 = tl.zeros([BR], tl.float64)
    for p in range(0, pieces, BP):
        inside = here & (p + lane < pieces)[None, :]
        taken = tl.minimum(n - (p + lane) * piece, piece).to(tl.float64)[None, :]
        at = (p + lane)[None, :] * rows + row[:, None]
        d = tl.load(parts + at, mask=inside, other=0.0) - center[:, None]
        squares = tl.load(m2_parts + at, mask=inside, other=0.0)
        m2 += tl.sum(tl.where(inside, squares + d * d * taken, 0.0), axis=1)
    _store_variance(out, row, m2, n, divisor, row < rows)


# ---- extreme values ------------------------------------------------------------------------------------------------------
@triton.jit
def _order(x, SMALLEST: tl.constexpr):
    """An integer that is the greater, the more extreme x is: NaN above all, zeros of both signs equal."""
    if x.dtype == tl.float64:
        bits = (x + 0.0).to(tl.int64, bitcast=True)
        key = bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)
    elif x.dtype.is_floating():
        x = x.to(tl.float32)
        bits = (x + 0.0).to(tl.int32, bitcast=True)
        key = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    elif x.dtype.primitive_bitwidth < 32:
        key = x.to(tl.int32)
    elif x.dtype.is_int_unsigned():
        WIDE: tl.constexpr = tl.int32 if x.dtype == tl.uint32 else tl.int64
        key = x.to(WIDE) + -(1 << (x.dtype.primitive_bitwidth - 1))
    else:
        key = x
    if SMALLEST:
        key = ~key
    if x.dtype.is_floating():
        key = tl.where(x != x, (1 << (key.dtype.primitive_bitwidth - 1)) - 1, key)
    return key


@triton.jit
def _store_extreme(x, values, indices, row, address, best_at, stored, VALUES: tl.constexpr):
    tl.store(indices + row, best_at, mask=stored)
    if VALUES:
        tl.store(values + row, tl.load(x + address, mask=stored), mask=stored)


@triton.jit
def _keys(x, at, begin, place, here, length, stride, SMALLEST: tl.constexpr, UNIT: tl.constexpr):
    """The keys of each row's elements at places of a piece, and which there are."""
    inside = here[:, None] & (place < length)[None, :]
    if UNIT % 2:
        offset = place[None, :]
    else:
        offset = (place.to(tl.int64) * stride)[None, :]
    element = tl.load(x + (at + begin * stride)[:, None] + offset, mask=inside, other=0)
    return _order(element, SMALLEST), inside


@triton.jit
def extreme(
    x, values, indices, parts, rows, n, n_inner, outer_stride, inner_stride, stride, piece, pieces,
    BR: tl.constexpr, BN: tl.constexpr, UNIT: tl.constexpr, ALIGNED: tl.constexpr, WHOLE: tl.constexpr, SMALLEST: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """The first most extreme element of each row, or with several pieces their (key, index) to parts[2, pieces, rows]; UNIT, ALIGNED and WHOLE as above. A piece has at most 2**30 elements."""
    row = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    begin = tl.program_id(1).to(tl.int64) * piece
    length = tl.minimum(piece, n - begin).to(tl.int32)
    if ALIGNED:
        length = tl.multiple_of(length, 16)
    if UNIT % 2:
        stride = 1
    at = _row_offsets(row, n_inner, outer_stride, inner_stride, UNIT)
    lane = tl.arange(0, BN)
    here = row < rows
    # Each lane keeps its own best; the greatest key of its lane, in the first tile that has it.
    key, inside = _keys(x, at, begin, lane, here, length, stride, SMALLEST, UNIT)
    LOWEST: tl.constexpr = -(1 << (key.dtype.primitive_bitwidth - 1))
    key = tl.where(inside, key, LOWEST)
    first = tl.zeros([BR, BN], tl.int32)  # of the tile
    if not WHOLE:
        for k in range(BN, length, BN):
            new, inside = _keys(x, at, begin, k + lane, here, length, stride, SMALLEST, UNIT)
            better = inside & (new > key)
            key = tl.where(better, new, key)
            first = tl.where(better, k, first)
    best = tl.max(key, axis=1)
    place = first + lane[None, :]
    place = tl.where((key == best[:, None]) & (place < length), place, 0x7FFFFFFF)
    best_at = begin + tl.min(place, axis=1)
    if pieces == 1:
        _store_extreme(x, values, indices, row, at + best_at * stride, best_at, here, VALUES)
    else:
        slot = parts + tl.program_id(1).to(tl.int64) * rows + row
        tl.store(slot, best.to(tl.int64), mask=here)
        tl.store(slot + pieces.to(tl.int64) * rows, best_at, mask=here)


@triton.jit
def join_extremes(
    x, values, indices, parts, rows, n_inner, outer_stride, inner_stride, stride, pieces,
    BR: tl.constexpr, BP: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """The first most extreme element of each row from those of its pieces."""
    row = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    lane = tl.arange(0, BP).to(tl.int64)
    here = (row < rows)[:, None]
    LOWEST: tl.constexpr = -(1 << 63)
    FARTHEST: tl.constexpr = 0x7FFFFFFFFFFFFFFF
    key = tl.full([BR, BP], LOWEST, tl.int64)
    index = tl.full([BR, BP], FARTHEST, tl.int64)
    for p in range(0, pieces, BP):
        inside = here & (p + lane < pieces)[None, :]
        at = (p + lane)[None, :] * rows + row[:, None]
        new = tl.load(parts + at, mask=inside, other=LOWEST)
        new_index = tl.load(parts + pieces.to(tl.int64) * rows + at, mask=inside, other=FARTHEST)
        better = (new > key) | ((new == key) & (new_index < index))
        key = tl.where(better, new, key)
        index = tl.where(better, new_index, index)
    best = tl.max(key, axis=1)
    best_at = tl.min(tl.where(key == best[:, None], index, FARTHEST), axis=1)
    address = _row_offsets(row, n_inner, outer_stride, inner_stride, 0) + best_at * stride
    _store_extreme(x, values, indices, row, address, best_at, row < rows, VALUES)


# ---- least and greatest values -------------------------------------------------------------------------------------------
@triton.jit
def _less(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _greater(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _numbers(x, at, inside):
    """Elements in a dtype that has both functions."""
    return _number(tl.load(x + at, mask=inside, other=0))


@triton.jit
def least_and_greatest(
    x, least, greatest, parts, rows, n, n_inner, outer_stride, inner_stride, stride, piece, pieces,
    BR: tl.constexpr, BN: tl.constexpr, UNIT: tl.constexpr, ALIGNED: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """The least and the greatest element of each row, NaN if there is one, or with several pieces those of each to parts[2, pieces, rows]; UNIT, ALIGNED and WHOLE as above."""
    row = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    if WHOLE:
        value, inside = _whole_rows(
            x, row, rows, n, n_inner, outer_stride, inner_stride, BN, UNIT, ALIGNED
        )
        value = _number(value)
        low = tl.reduce(tl.where(inside, value, reduction.start("highest", value.dtype)), 1, _less)
        high = tl.reduce(
            tl.where(inside, value, reduction.start("lowest", value.dtype)), 1, _greater
        )
        tl.store(least + row, low.to(x.dtype.element_ty), mask=row < rows)
        tl.store(greatest + row, high.to(x.dtype.element_ty), mask=row < rows)
        return
    begin = tl.program_id(1).to(tl.int64) * piece
    end = tl.minimum(begin + piece, n)
    if UNIT % 2:
        stride = 1
    at = _row_offsets(row, n_inner, outer_stride, inner_stride, UNIT)
    lane = tl.arange(0, BN).to(tl.int64)
    here = (row < rows)[:, None]
    first = _numbers(x, at + begin * stride, row < rows)[:, None]
    low = tl.broadcast_to(first, [BR, BN])
    high = low
    for k in range(begin, end, BN):
        inside = here & (k + lane < end)[None, :]
        value = _numbers(x, at[:, None] + ((k + lane) * stride)[None, :], inside)
        value = tl.where(inside, value, first)
        low = _less(low, value)
        high = _greater(high, value)
    if pieces == 1:
        to_low = least + row
        to_high = greatest + row
    else:
        to_low = parts + tl.program_id(1).to(tl.int64) * rows + row
        to_high = to_low + pieces.to(tl.int64) * rows
    tl.store(to_low, tl.reduce(low, 1, _less).to(x.dtype.element_ty), mask=row < rows)
    tl.store(to_high, tl.reduce(high, 1, _greater).to(x.dtype.element_ty), mask=row < rows)


@triton.jit
def join_least_and_greatest(
    least, greatest, parts, rows, pieces, BR: tl.constexpr, BP: tl.constexpr
):
    """Of each row from those of its pieces."""
    row = tl.program_id(0).to(tl.int64) * BR + tl.arange(0, BR)
    lane = tl.arange(0, BP).to(tl.int64)
    here = (row < rows)[:, None]
    others = parts + pieces.to(tl.int64) * rows
    low = tl.broadcast_to(_numbers(parts, row, row < rows)[:, None], [BR, BP])
    high = tl.broadcast_to(_numbers(others, row, row < rows)[:, None], [BR, BP])
    for p in range(0, pieces, BP):
        inside = here & (p + lane < pieces)[None, :]
        at = (p + lane)[None, :] * rows + row[:, None]
        low = tl.where(inside, _less(low, _numbers(parts, at, inside)), low)
        high = tl.where(inside, _greater(high, _numbers(others, at, inside)), high)
    tl.store(least + row, tl.reduce(low, 1, _less).to(parts.dtype.element_ty), mask=row < rows)
    tl.store(
        greatest + row, tl.reduce(high, 1, _greater).to(parts.dtype.element_ty), mask=row < rows
    )


_ROWS = {"n_inner": "i64", "outer_stride": "i64", "inner_stride": "i64", "stride": "i64"}
# (rows, elements) of a program's tile, for UNIT 1 and 3 the elements and for 2 and 0 the rows along memory
_ALONG = [(max(2048 // n, 1), n) for n in (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)]
_TILES = {0: [(64, 64)], 1: _ALONG, 2: [(64, 64)], 3: _ALONG}
_TILE_CONSTANTS: dict[str, Sequence[Any]] = {
    "BR": [1, 2, 4, 8, 16, 32, 64, 128, 256],
    "BN": [n for _, n in _ALONG],
    "UNIT": [0, 1, 2, 3],
    "ALIGNED": [False, True],
    "WHOLE": [False, True],
}


_JOINED = {"BR": [4, 64], "BP": [16, 256]}


def _is_joined(v: Variant) -> bool:
    return bool(v["BR"] * v["BP"] == 1024)


def _aligned(v: Variant) -> tuple[str, ...]:
    return ("x", "n", "outer_stride", "inner_stride", "piece") if v["ALIGNED"] else ()


def _is_tile(v: Variant) -> bool:
    whole = v["UNIT"] % 2 == 1 and v["BN"] < 4096
    possible = not v["ALIGNED"] or v["BN"] >= 16
    return (v["BR"], v["BN"]) in _TILES[v["UNIT"]] and v["WHOLE"] == whole and possible


KERNELS = [
    Kernel(
        moments,
        signature={
            "x": "*T",
            "out": "*T",
            "parts": "*float64",
            "rows": "i64",
            "n": "i64",
            **_ROWS,
            "divisor": "fp64",
            "piece": "i64",
            "pieces": "i64",
        },  # fmt: skip
        types={"T": FLOATING},
        constants={**_TILE_CONSTANTS, "STEPS": [16]},
        num_warps=8,
        divisible=_aligned,
        wheel=lambda v: _is_tile(v) and v["UNIT"] == 1,
    ),
    Kernel(
        join_moments,
        signature={
            "parts": "*float64",
            "out": "*T",
            "rows": "i64",
            "n": "i64",
            "divisor": "fp64",
            "piece": "i64",
            "pieces": "i64",
        },  # fmt: skip
        types={"T": FLOATING},
        constants=_JOINED,
        wheel=_is_joined,
    ),
    Kernel(
        extreme,
        signature={
            "x": "*T",
            "values": "*T",
            "indices": "*int64",
            "parts": "*int64",
            "rows": "i64",
            "n": "i64",
            **_ROWS,
            "piece": "i64",
            "pieces": "i64",
        },  # fmt: skip
        types={"T": REAL},
        constants={**_TILE_CONSTANTS, "SMALLEST": [False, True], "VALUES": [False, True]},
        default={"T": ["float32", "bfloat16"]},
        num_warps=8,
        max_registers=64,
        divisible=_aligned,
        wheel=lambda v: _is_tile(v) and v["UNIT"] == 1 and not v["SMALLEST"],
    ),
    Kernel(
        join_extremes,
        signature={
            "x": "*T",
            "values": "*T",
            "indices": "*int64",
            "parts": "*int64",
            "rows": "i64",
            **_ROWS,
            "pieces": "i64",
        },  # fmt: skip
        types={"T": REAL},
        constants={**_JOINED, "VALUES": [False, True]},
        wheel=_is_joined,
        default={"T": ["float32", "bfloat16"]},
    ),
    Kernel(
        least_and_greatest,
        signature={
            "x": "*T",
            "least": "*T",
            "greatest": "*T",
            "parts": "*T",
            "rows": "i64",
            "n": "i64",
            **_ROWS,
            "piece": "i64",
            "pieces": "i64",
        },  # fmt: skip
        types={"T": REAL},
        constants=_TILE_CONSTANTS,
        num_warps=8,
        divisible=_aligned,
        wheel=lambda v: _is_tile(v) and v["UNIT"] == 1,
    ),
    Kernel(
        join_least_and_greatest,
        signature={
            "least": "*T",
            "greatest": "*T",
            "parts": "*T",
            "rows": "i64",
            "pieces": "i64",
        },  # fmt: skip
        types={"T": REAL},
        constants=_JOINED,
        wheel=_is_joined,
    ),
]
