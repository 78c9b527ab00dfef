"""Stable sorting of long rows by digits of four bits, the lowest first: each pass counts, sums and scatters.

A program takes `steps` tiles of 64 x 8 elements of one row. How often each digit occurs so far is kept in packed counters: sixteen of
four bits along the eight elements of a line, four times four of sixteen bits over the lines, so a program takes less than 2**16 elements.
Elements are moved as they are, and their digits are those of `sort.ordered_key`: zeros of both signs are equal, and so is every NaN.

A digit in which a row's keys are all alike (the high ones of indices, say) moves nothing: `radix_varying` finds the bits that differ, and the passes
of other digits do nothing. So a pass finds from those bits where its elements lie, and where the next pass, or the caller, expects them.
"""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import REAL, Kernel
from argand_aten_cuda.kernels.sort import ordered_key

LINES = tl.constexpr(64)
LINE = tl.constexpr(8)
TILE = tl.constexpr(512)
FIELDS = tl.constexpr(0x000F000F000F000F)  # every fourth counter of four bits


@triton.jit
def _digit(x, shift, DESCENDING: tl.constexpr):
    """The four bits of each element's key at `shift`, which is 0 for the lowest digit."""
    key = ordered_key(x) ^ -(1 << (x.dtype.primitive_bitwidth - 1))
    if DESCENDING:
        key = ~key
    return ((key >> shift) & 15).to(tl.int32)


@triton.jit
def _or(a, b):
    return a | b


@triton.jit
def _odd(ones):
    """Whether the number of ones is odd; they are every fourth bit at most."""
    ones ^= ones >> 32
    ones ^= ones >> 16
    ones ^= ones >> 8
    return ((ones ^ (ones >> 4)) & 1) != 0


@triton.jit
def _passes(varying, shift):
    """Of a row whose keys differ in these bits: whether this digit's pass moves elements, and a one for each pass before and after it that does."""
    digits = varying | (varying >> 1)
    digits = ((digits | (digits >> 2)) & 0x1111111111111111) | 1  # the first does in any case
    before = digits & ((tl.full([], 1, tl.int64) << shift) - 1)
    return ((digits >> shift) & 1) != 0, before, digits >> shift >> 4


@triton.jit
def _source(x, spare, values, earlier, later):
    """Where a pass finds its elements: the first where they were, others beside `values`, which the last pass fills, by turns."""
    source = x
    if earlier != 0:
        if _odd(later):
            source = values
        else:
            source = spare
    return source


@triton.jit
def radix_varying(varying, x, n, tiles, steps, ALIGNED: tl.constexpr):
    """Sets the bits in which the keys of a row's elements differ, in a zero for each row."""
    row = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    x += row.to(tl.int64) * n
    first = ordered_key(tl.load(x))
    found = tl.zeros([LINES, LINE], first.dtype)
    for s in range(tile * steps, (tile + 1) * steps):
        at, live = _tile(s * TILE, n)
        key = ordered_key(tl.load(x + at, mask=live, other=0))
        found |= tl.where(live, key ^ first, 0)
    bits = tl.reduce(tl.reduce(found, 1, _or), 0, _or).to(tl.int64)
    WIDTH: tl.constexpr = x.dtype.element_ty.primitive_bitwidth
    if WIDTH < 64:
        bits &= (1 << WIDTH) - 1
    tl.atomic_or(varying + row, bits, sem="relaxed")


@triton.jit
def _ones(x, at, live, shift, DESCENDING: tl.constexpr):
    """Elements, their digits, and a one in the counter of each element's digit."""
    value = tl.load(x + at, mask=live, other=0)
    digit = _digit(value, shift, DESCENDING)
    return value, digit, tl.where(live, (digit >= 0).to(tl.int64) << (digit * 4), 0)


@triton.jit
def _tile(first, n):
    j = first + tl.arange(0, LINES)[:, None] * LINE + tl.arange(0, LINE)[None, :]
    return j, j < n


@triton.jit
def _counter(digit, c0, c1, c2, c3):
    """A digit's counter of sixteen bits."""
    k = digit & 3
    c = tl.where(k < 2, tl.where(k == 0, c0, c1), tl.where(k == 2, c2, c3))
    return ((c >> ((digit >> 2) * 16)) & 0xFFFF).to(tl.int32)


@triton.jit
def radix_count(
    counts, x, spare, values, varying, n, tiles, steps, shift, DESCENDING: tl.constexpr, ALIGNED: tl.constexpr
):  # fmt: skip
    """How often each digit occurs in each program's elements: counts[row, digit, tile]. ALIGNED: all pointers and n are multiples of 16."""
    row = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    moves, earlier, later = _passes(tl.load(varying + row), shift)
    if moves:
        source = _source(x, spare, values, earlier, later) + row.to(tl.int64) * n
        c0 = tl.zeros([LINES], tl.int64)
        c1 = c0
        c2 = c0
        c3 = c0
        for s in range(tile * steps, (tile + 1) * steps):
            at, live = _tile(s * TILE, n)
            _, _, ones = _ones(source, at, live, shift, DESCENDING)
            line = tl.sum(ones, 1)
            c0 += line & FIELDS
            c1 += (line >> 4) & FIELDS
            c2 += (line >> 8) & FIELDS
            c3 += (line >> 12) & FIELDS
        digit = tl.arange(0, 16)
        found = _counter(digit, tl.sum(c0, 0), tl.sum(c1, 0), tl.sum(c2, 0), tl.sum(c3, 0))
        tl.store(counts + (row * 16 + digit) * tiles + tile, found)


@triton.jit
def radix_offsets(offsets, counts, varying, tiles, shift, BLOCK: tl.constexpr):
    """Where the elements of each digit and tile begin in their row: offsets[row, tile, digit]. A program takes a row's digit."""
    row = tl.program_id(0) // 16
    digit = tl.program_id(0) % 16
    moves, _, _ = _passes(tl.load(varying + row), shift)
    if moves:
        counts += row.to(tl.int64) * tiles * 16
        lane = tl.arange(0, BLOCK)
        smaller = tl.zeros([BLOCK], tl.int32)
        for first in range(0, digit * tiles, BLOCK):
            smaller += tl.load(counts + first + lane, mask=first + lane < digit * tiles, other=0)
        total = tl.sum(smaller, 0)
        for first in range(0, tiles, BLOCK):
            tile = first + lane
            c = tl.load(counts + digit * tiles + tile, mask=tile < tiles, other=0)
            to = (row.to(tl.int64) * tiles + tile) * 16 + digit
            tl.store(offsets + to, total + tl.cumsum(c, 0) - c, mask=tile < tiles)
            total += tl.sum(c, 0)


@triton.jit
def radix_scatter(
    values, indices, x, spare, places, turned, offsets, varying, n, tiles, steps, shift,
    DESCENDING: tl.constexpr, ALIGNED: tl.constexpr, INDICES: tl.constexpr,
):  # fmt: skip
    """Moves each element and, if INDICES, its index to its place by the digit: the last pass to `values` and `indices`, the first from `x`, whose indices are places."""
    row = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    moves, earlier, later = _passes(tl.load(varying + row), shift)
    if moves:
        base = row.to(tl.int64) * n
        offsets += tl.program_id(0).to(tl.int64) * 16
        source = _source(x, spare, values, earlier, later) + base
        if _odd(later):
            to_values = spare
        else:
            to_values = values
        if _odd(earlier):
            previous = places
            to_places = turned
        else:
            previous = turned
            to_places = places
        is_first = earlier == 0
        is_last = later == 0
        c0 = tl.zeros([], tl.int64)
        c1 = c0
        c2 = c0
        c3 = c0
        for s in range(tile * steps, (tile + 1) * steps):
            at, live = _tile(s * TILE, n)
            value, digit, ones = _ones(source, at, live, shift, DESCENDING)
            if INDICES:
                index = tl.load(previous + base + at, mask=live & (is_first == 0), other=0)
                index = tl.where(is_first, at, index)
            upto = tl.cumsum(ones, 1)
            line = tl.sum(ones, 1)
            l0 = line & FIELDS
            l1 = (line >> 4) & FIELDS
            l2 = (line >> 8) & FIELDS
            l3 = (line >> 12) & FIELDS
            b0 = (c0 + tl.cumsum(l0, 0) - l0)[:, None]
            b1 = (c1 + tl.cumsum(l1, 0) - l1)[:, None]
            b2 = (c2 + tl.cumsum(l2, 0) - l2)[:, None]
            b3 = (c3 + tl.cumsum(l3, 0) - l3)[:, None]
            among = ((upto - ones) >> (digit * 4)) & 15
            before = _counter(digit, b0, b1, b2, b3) + among.to(tl.int32)
            to = base + tl.load(offsets + digit) + before
            tl.store(to_values + to, value, mask=live)
            if INDICES:
                tl.store(indices + to, index.to(tl.int64), mask=live & is_last)
                tl.store(to_places + to, index, mask=live & (is_last == 0))
            c0 += tl.sum(l0, 0)
            c1 += tl.sum(l1, 0)
            c2 += tl.sum(l2, 0)
            c3 += tl.sum(l3, 0)


_TILES = {"n": "i32", "tiles": "i32", "steps": "i32"}
_WALK = {"varying": "*i64", **_TILES, "shift": "i32"}
_BUFFERS = {"x": "*T", "spare": "*T", "values": "*T"}
_ALIGNED = {"ALIGNED": [False, True]}
_ORDER = {"DESCENDING": [False, True], **_ALIGNED}

# Indices are sorted by every gradient of a large embedding, and by `unique`, often as int32.
_DEFAULT = {"T": ["int64", "int32"]}

KERNELS = [
    Kernel(
        radix_varying,
        signature={"varying": "*i64", "x": "*T", **_TILES},
        types={"T": REAL},
        constants=_ALIGNED,
        default=_DEFAULT,
        num_warps=2,
        divisible=lambda v: ("x", "n") if v["ALIGNED"] else (),
    ),
    Kernel(
        radix_count,
        signature={"counts": "*i32", **_BUFFERS, **_WALK},
        types={"T": REAL},
        constants=_ORDER,
        default=_DEFAULT,
        num_warps=2,
        divisible=lambda v: ("x", "spare", "values", "n") if v["ALIGNED"] else (),
        wheel=lambda v: not v["DESCENDING"],
    ),
    Kernel(
        radix_offsets,
        signature={
            "offsets": "*i32",
            "counts": "*i32",
            "varying": "*i64",
            "tiles": "i32",
            "shift": "i32",
        },
        constants={"BLOCK": [1024]},
    ),
    Kernel(
        radix_scatter,
        signature={
            "values": "*T",
            "indices": "*i64",
            "x": "*T",
            "spare": "*T",
            "places": "*i32",
            "turned": "*i32",
            "offsets": "*i32",
            **_WALK,
        },
        types={"T": REAL},
        constants={**_ORDER, "INDICES": [True, False]},
        default=_DEFAULT,
        num_warps=2,
        divisible=lambda v: (
            ("x", "spare", "values", "places", "turned", "n") if v["ALIGNED"] else ()
        ),
        wheel=lambda v: not v["DESCENDING"],
    ),
]
