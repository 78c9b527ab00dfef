"""Stable sorting by digits of eight bits, the lowest first: rows of up to 4096 elements by one program each, longer ones by passes over memory.

A pass over memory counts, sums and scatters; a program takes a tile of a row. Elements are moved as they are, and their digits are those of
`sort.ordered_key`: zeros of both signs are equal, and so is every NaN. What a tile stores lies in order there, so that neighbours are stored side by side.

A digit in which a row's keys are all alike (the high ones of indices, say) moves nothing: `radix_varying` finds the bits that differ, and the passes
of other digits do nothing. So a pass finds from those bits where its elements lie, and where the next pass, or the caller, expects them.
"""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import REAL, Kernel
from argand_aten_cuda.kernels._digits import DIGITS, digit_counts, stable_order
from argand_aten_cuda.kernels.sort import ordered_key

TILE = tl.constexpr(4096)
LAST_DIGIT = tl.constexpr(255)  # of places behind a row


@triton.jit
def _digit(x, shift, DESCENDING: tl.constexpr):
    """The eight bits of each element's key at `shift`, which is 0 for the lowest digit."""
    key = ordered_key(x) ^ -(1 << (x.dtype.primitive_bitwidth - 1))
    if DESCENDING:
        key = ~key
    return ((key >> shift) & 255).to(tl.int32)


@triton.jit
def _or(a, b):
    return a | b


@triton.jit
def _odd(ones):
    """Whether the number of ones is odd; they are every eighth bit at most."""
    ones ^= ones >> 32
    ones ^= ones >> 16
    return ((ones ^ (ones >> 8)) & 1) != 0


@triton.jit
def _passes(varying, shift):
    """Of a row whose keys differ in these bits: whether this digit's pass moves elements, and a one for each pass before and after it that does."""
    digits = varying | ((varying >> 1) & 0x7F7F7F7F7F7F7F7F)
    digits |= (digits >> 2) & 0x3F3F3F3F3F3F3F3F
    digits |= (digits >> 4) & 0x0F0F0F0F0F0F0F0F
    digits = (digits & 0x0101010101010101) | 1  # the first does in any case
    before = digits & ((tl.full([], 1, tl.int64) << shift) - 1)
    return ((digits >> shift) & 1) != 0, before, digits >> shift >> 8


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
    """Sets the bits in which the keys of a row's elements differ, in a zero for each row; a program takes `steps` tiles, of which a row has `tiles` times as many."""
    row = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    x += row.to(tl.int64) * n
    first = ordered_key(tl.load(x))
    found = tl.zeros([TILE], first.dtype)
    for s in range(tile * steps, (tile + 1) * steps):
        lane = tl.arange(0, TILE)
        live = lane < n - s * TILE  # s * TILE may be next to 2**31, places behind the row beyond
        key = ordered_key(tl.load(x + s * TILE + lane, mask=live, other=0))
        found |= tl.where(live, key ^ first, 0)
    bits = tl.reduce(found, 0, _or).to(tl.int64)
    WIDTH: tl.constexpr = x.dtype.element_ty.primitive_bitwidth
    if WIDTH < 64:
        bits &= (1 << WIDTH) - 1
    tl.atomic_or(varying + row, bits, sem="relaxed")


@triton.jit
def _tile(n, tiles, ALIGNED: tl.constexpr):
    """A program's row and tile, places in the row, and which there are."""
    row = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    at = tile * TILE + tl.arange(0, TILE)
    return row, tile, at, at < n


@triton.jit
def radix_count(
    counts, x, spare, values, varying, n, tiles, shift, DESCENDING: tl.constexpr, ALIGNED: tl.constexpr
):  # fmt: skip
    """How often each digit occurs in each tile: counts[row, digit, tile]. ALIGNED: all pointers and n are multiples of 16, of elements of 32 bits or more.

    Vectors of narrower ones would lie in threads as indices do not, and Triton find the order once for each way.
    """
    row, tile, at, live = _tile(n, tiles, ALIGNED)
    moves, earlier, later = _passes(tl.load(varying + row), shift)
    if moves:
        source = _source(x, spare, values, earlier, later) + row * n
        digit = _digit(tl.load(source + at, mask=live, other=0), shift, DESCENDING)
        found = digit_counts(tl.where(live, digit, DIGITS), TILE)
        lane = tl.arange(0, TILE)
        tl.store(counts + (row * DIGITS + lane) * tiles + tile, found, mask=lane < DIGITS)


@triton.jit
def radix_totals(totals, counts, varying, tiles, shift, BLOCK: tl.constexpr):
    """How often each digit occurs in each row: totals[row, digit]. A program takes a row's digit."""
    row = tl.program_id(0) // DIGITS
    moves, _, _ = _passes(tl.load(varying + row), shift)
    if moves:
        counts += tl.program_id(0).to(tl.int64) * tiles
        lane = tl.arange(0, BLOCK)
        found = tl.zeros([BLOCK], tl.int32)
        for first in range(0, tiles, BLOCK):
            found += tl.load(counts + first + lane, mask=first + lane < tiles, other=0)
        tl.store(totals + tl.program_id(0), tl.sum(found, 0))


@triton.jit
def radix_starts(counts, totals, varying, tiles, shift, BLOCK: tl.constexpr):
    """Counts become the places in their row where the elements of each digit and tile begin. A program takes a row's digit."""
    row = tl.program_id(0) // DIGITS
    digit = tl.program_id(0) % DIGITS
    moves, _, _ = _passes(tl.load(varying + row), shift)
    if moves:
        d = tl.arange(0, DIGITS)
        start = tl.sum(tl.load(totals + row * DIGITS + d, mask=d < digit, other=0), 0)
        counts += tl.program_id(0).to(tl.int64) * tiles
        lane = tl.arange(0, BLOCK)
        for first in range(0, tiles, BLOCK):
            live = first + lane < tiles
            c = tl.load(counts + first + lane, mask=live, other=0)
            tl.store(counts + first + lane, start + tl.cumsum(c, 0) - c, mask=live)
            start += tl.sum(c, 0)


@triton.jit
def radix_few_starts(counts, varying, tiles, shift, BLOCK: tl.constexpr):
    """The same for rows of at most BLOCK tiles. A program takes a row."""
    row = tl.program_id(0)
    moves, _, _ = _passes(tl.load(varying + row), shift)
    if moves:
        counts += row.to(tl.int64) * DIGITS * tiles
        tile = tl.arange(0, BLOCK)[None, :]
        at = tl.arange(0, DIGITS)[:, None] * tiles + tile
        c = tl.load(counts + at, mask=tile < tiles, other=0)
        total = tl.sum(c, 1)
        start = tl.cumsum(total, 0) - total
        tl.store(counts + at, start[:, None] + tl.cumsum(c, 1) - c, mask=tile < tiles)


@triton.jit
def radix_scatter(
    values, indices, x, spare, places, turned, starts, varying, n, tiles, shift,
    DESCENDING: tl.constexpr, ALIGNED: tl.constexpr, INDICES: tl.constexpr,
):  # fmt: skip
    """Moves each element and, if INDICES, its index to its place by the digit: the last pass to `values` and `indices`, the first from `x`, whose indices are places."""
    row, tile, at, live = _tile(n, tiles, ALIGNED)
    moves, earlier, later = _passes(tl.load(varying + row), shift)
    if moves:
        base = row * n
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
        value = tl.load(source + at, mask=live, other=0)
        digit = tl.where(live, _digit(value, shift, DESCENDING), LAST_DIGIT)
        order, among = stable_order(digit, TILE)  # live ones keep the first places
        value = tl.gather(value, order, 0)
        start = starts + row * DIGITS * tiles + tile
        first = tl.load(start + _digit(value, shift, DESCENDING) * tiles, mask=live, other=0)
        to = first + among
        tl.store(to_values + base + to, value, mask=live)
        if INDICES:
            index = tl.load(previous + base + at, mask=live & (is_first == 0), other=0)
            index = tl.gather(tl.where(is_first, at, index), order, 0)
            if is_last:
                tl.store(indices + base + to, index.to(tl.int64), mask=live)
            else:
                tl.store(to_places + base + to, index, mask=live)


@triton.jit
def radix_rows(values, indices, x, n, digits, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    """Sorts each row of n <= BLOCK elements, a program a row."""
    row = tl.program_id(0).to(tl.int64) * n
    x += row
    place = tl.arange(0, BLOCK)
    live = place < n
    index = place
    key = ordered_key(tl.load(x + place, mask=live, other=0))
    varying = tl.reduce(tl.where(live, key ^ ordered_key(tl.load(x)), 0), 0, _or)
    for k in range(0, digits):
        if ((varying >> 8 * k) & 255) != 0:
            value = tl.load(x + index, mask=index < n, other=0)
            digit = tl.where(index < n, _digit(value, 8 * k, DESCENDING), LAST_DIGIT)
            order, _ = stable_order(digit, BLOCK)  # what is behind the row stays there
            index = tl.gather(index, order, 0)
    tl.store(values + row + place, tl.load(x + index, mask=live), mask=live)
    tl.store(indices + row + place, index.to(tl.int64), mask=live)


_BUFFERS = {"x": "*T", "spare": "*T", "values": "*T"}
_PASS = {"varying": "*i64", "n": "i32", "tiles": "i32", "shift": "i32"}
_SUMS = {"varying": "*i64", "tiles": "i32", "shift": "i32"}
_ALIGNED = {"ALIGNED": [False, True]}
_ORDER = {"DESCENDING": [False, True], **_ALIGNED}

# Indices are sorted by every gradient of a large embedding, and by `unique`, often as int32, as are the keys of `randperm`.
_DEFAULT = {"T": ["float32", "int64", "int32"]}

KERNELS = [
    Kernel(
        radix_varying,
        signature={"varying": "*i64", "x": "*T", "n": "i32", "tiles": "i32", "steps": "i32"},
        types={"T": REAL},
        constants=_ALIGNED,
        default=_DEFAULT,
        num_warps=8,
        divisible=lambda v: ("x", "n") if v["ALIGNED"] else (),
    ),
    Kernel(
        radix_count,
        signature={"counts": "*i32", **_BUFFERS, **_PASS},
        types={"T": REAL},
        constants=_ORDER,
        default=_DEFAULT,
        num_warps=8,
        divisible=lambda v: ("x", "spare", "values", "n") if v["ALIGNED"] else (),
        wheel=lambda v: not v["DESCENDING"],
    ),
    Kernel(
        radix_totals,
        signature={"totals": "*i32", "counts": "*i32", **_SUMS},
        constants={"BLOCK": [1024]},
    ),
    Kernel(
        radix_starts,
        signature={"counts": "*i32", "totals": "*i32", **_SUMS},
        constants={"BLOCK": [1024]},
    ),
    Kernel(
        radix_few_starts,
        signature={"counts": "*i32", **_SUMS},
        constants={"BLOCK": [16]},
        num_warps=8,
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
            "starts": "*i32",
            **_PASS,
        },
        types={"T": REAL},
        constants={**_ORDER, "INDICES": [True, False]},
        default=_DEFAULT,
        num_warps=8,
        max_registers=128,
        divisible=lambda v: (
            ("x", "spare", "values", "places", "turned", "n") if v["ALIGNED"] else ()
        ),
        wheel=lambda v: not v["DESCENDING"],
    ),
    Kernel(
        radix_rows,
        signature={"values": "*T", "indices": "*i64", "x": "*T", "n": "i32", "digits": "i32"},
        types={"T": REAL},
        constants={"DESCENDING": [False, True], "BLOCK": [4096, 2048, 1024]},
        default=_DEFAULT,
        num_warps=8,
        max_registers=128,
        wheel=lambda v: v["BLOCK"] == 4096 or not v["DESCENDING"],
    ),
]
