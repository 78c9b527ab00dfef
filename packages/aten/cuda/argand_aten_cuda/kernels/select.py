"""One element of each long row in a stable ascending order, NaN last, without sorting it.

The element's key is found by digits of eight bits, the highest first: a pass counts the digits of the keys that begin as the one looked for, and
says which digit comes next and how many elements with it come before. Among equal keys the element is found by counting. A program takes `steps`
tiles of one row.
"""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import REAL, Kernel
from argand_aten_cuda.kernels.sort import KTH, MEDIAN, ordered_key

BINS = tl.constexpr(256)


@triton.jit
def _key(x):
    """Unsigned integers in the order of the values; those of narrower elements have zeros above."""
    BITS: tl.constexpr = x.dtype.primitive_bitwidth
    key = ordered_key(x).to(tl.int64)
    if BITS == 64:
        key ^= -(1 << 63)
    else:
        key += 1 << (BITS - 1)
    return key.to(tl.uint64)


@triton.jit
def _tile(x, first, n, BLOCK: tl.constexpr):
    """Places, which of them there are (the last program's tiles may begin beyond 2**31), and elements."""
    lane = tl.arange(0, BLOCK)
    at = first * BLOCK + lane
    live = lane < n - first * BLOCK
    return at, live, tl.load(x + at, mask=live, other=0)


@triton.jit
def select_numbers(numbers, x, n, tiles, steps, BLOCK: tl.constexpr):
    """Adds how many elements of a row are not NaN."""
    row = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    x += row.to(tl.int64) * n
    found = tl.zeros([BLOCK], tl.int32)
    for s in range(tile * steps, (tile + 1) * steps):
        _, live, value = _tile(x, s, n, BLOCK)
        number = value.to(tl.float32)
        found += (live & (number == number)).to(tl.int32)
    tl.atomic_add(numbers + row, tl.sum(found, 0), sem="relaxed")


@triton.jit
def select_start(prefix, left, numbers, n, k, KIND: tl.constexpr):
    """Of a row: no digit yet, and how many elements come before the one looked for."""
    row = tl.program_id(0)
    rank = k
    if KIND != KTH:
        found = tl.load(numbers + row)
        if KIND == MEDIAN:  # the first NaN, if there is one
            rank = tl.where(found < n, found, (n - 1) // 2)
        else:
            rank = tl.maximum((found - 1) // 2, 0)
    tl.store(left + row, rank)
    tl.store(prefix + row, tl.zeros([], tl.uint64))


@triton.jit
def select_count(counts, prefix, x, n, tiles, steps, shift, BLOCK: tl.constexpr):
    """Adds how often each digit at `shift` occurs behind the digits found so far."""
    row = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    x += row.to(tl.int64) * n
    begins = tl.load(prefix + row) >> shift >> 8
    found = tl.zeros([BINS], tl.int32)
    for s in range(tile * steps, (tile + 1) * steps):
        _, live, value = _tile(x, s, n, BLOCK)
        key = _key(value) >> shift
        found += tl.histogram((key & 255).to(tl.int32), BINS, mask=live & ((key >> 8) == begins))
    digit = tl.arange(0, BINS)
    tl.atomic_add(counts + row * BINS + digit, found, mask=found > 0, sem="relaxed")


@triton.jit
def select_digit(prefix, left, counts, shift):
    """The next digit of a row's key, and how many elements that begin as it does come before; the counts are zero again."""
    row = tl.program_id(0)
    digit = tl.arange(0, BINS)
    at = counts + row * BINS + digit
    count = tl.load(at)
    before = tl.load(left + row)
    found = tl.sum((tl.cumsum(count, 0) <= before).to(tl.int32), 0)
    tl.store(left + row, before - tl.sum(tl.where(digit < found, count, 0), 0))
    tl.store(prefix + row, tl.load(prefix + row) | (found.to(tl.uint64) << shift))
    tl.store(at, count * 0)


@triton.jit
def select_equal(equal, prefix, x, n, tiles, steps, BLOCK: tl.constexpr):
    """How many of a program's elements have the key."""
    row = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    x += row.to(tl.int64) * n
    key = tl.load(prefix + row)
    found = tl.zeros([BLOCK], tl.int32)
    for s in range(tile * steps, (tile + 1) * steps):
        _, live, value = _tile(x, s, n, BLOCK)
        found += (live & (_key(value) == key)).to(tl.int32)
    tl.store(equal + tl.program_id(0), tl.sum(found, 0))


@triton.jit
def select_element(
    values, indices, equal, prefix, left, x, n, tiles, steps, BLOCK: tl.constexpr
):  # fmt: skip
    """The element, by the program that has it: `left` elements with the key come before it."""
    row = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    x += row.to(tl.int64) * n
    key = tl.load(prefix + row)
    equal += row * tiles
    lane = tl.arange(0, BLOCK)
    earlier = tl.zeros([BLOCK], tl.int32)
    for first in range(0, tile, BLOCK):
        earlier += tl.load(equal + first + lane, mask=first + lane < tile, other=0)
    rank = tl.load(left + row) - tl.sum(earlier, 0)
    if (rank >= 0) & (rank < tl.load(equal + tile)):
        for s in range(tile * steps, (tile + 1) * steps):
            at, live, value = _tile(x, s, n, BLOCK)
            same = (live & (_key(value) == key)).to(tl.int32)
            hit = (same != 0) & (tl.cumsum(same, 0) - 1 == rank)
            tl.store(values + row + at * 0, value, mask=hit)
            tl.store(indices + row + at * 0, at.to(tl.int64), mask=hit)
            rank -= tl.sum(same, 0)


_TILES = {"n": "i32", "tiles": "i32", "steps": "i32"}
_STATE = {"prefix": "*u64", "left": "*i32"}
_T = {"T": REAL}
_BLOCK = {"BLOCK": [2048]}
_DEFAULT = {"T": ["float32"]}

KERNELS = [
    Kernel(select_numbers, {"numbers": "*i32", "x": "*T", **_TILES}, _T, _BLOCK, default=_DEFAULT),
    Kernel(
        select_start,
        {**_STATE, "numbers": "*i32", "n": "i32", "k": "i32"},
        {},
        {"KIND": [0, 1, 2]},
        num_warps=1,
    ),
    Kernel(
        select_count,
        {"counts": "*i32", "prefix": "*u64", "x": "*T", **_TILES, "shift": "i32"},
        _T,
        _BLOCK,
        default=_DEFAULT,
    ),
    Kernel(select_digit, {**_STATE, "counts": "*i32", "shift": "i32"}, {}, {}),
    Kernel(
        select_equal,
        {"equal": "*i32", "prefix": "*u64", "x": "*T", **_TILES},
        _T,
        _BLOCK,
        default=_DEFAULT,
    ),
    Kernel(
        select_element,
        {"values": "*T", "indices": "*i64", "equal": "*i32", **_STATE, "x": "*T", **_TILES},
        _T,
        _BLOCK,
        default=_DEFAULT,
    ),
]
