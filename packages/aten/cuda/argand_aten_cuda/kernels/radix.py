"""Stable sorting of long rows by digits of eight bits, the lowest first: each pass counts, sums and scatters.

A program takes a tile of a row and sorts it by digit and place in registers, so that what is scattered lies in runs. Elements are moved as integers of their width, with 32-bit
places, and the key is made anew in each pass. A pass in which all elements of a row have one digit leaves the row where it is: it lies in `x` until a pass moves it, then in
the halves of `spare` by turns, and the last pass writes the results.
"""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.kernels.sort import bitonic, bits_key

DIGITS = tl.constexpr(256)
GROUP = tl.constexpr(8)  # digits of a program of radix_offsets
GROUPS = tl.constexpr(32)
PASSES = tl.constexpr(8)


@triton.jit
def _digit(bits, infinity, flip, shift):
    return ((bits_key(bits, infinity, flip) >> shift) & 255).to(tl.int32)


@triton.jit
def _moves(flags, rows, row, step):
    """How many passes before `step` have moved the row."""
    earlier = tl.arange(0, PASSES)[:, None]
    at = (earlier * rows + row) * GROUPS + tl.arange(0, GROUPS)[None, :]
    rests = tl.max(tl.load(flags + at, mask=(earlier < step) & (at >= 0), other=1), 1)
    return tl.sum(1 - rests, 0)


@triton.jit
def radix_count(counts, x, spare, flags, n, tiles, rows, step, infinity, flip, BLOCK: tl.constexpr):
    """How often each digit occurs in each tile: counts[row, tile, digit]."""
    row = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    moves = _moves(flags, rows, row, step)
    base = row.to(tl.int64) * n + tile * BLOCK
    if moves == 0:
        source = x + base
    else:
        source = spare + (base + ((moves - 1) & 1) * rows.to(tl.int64) * n)
    at = tl.arange(0, BLOCK)
    live = at < n - tile * BLOCK
    digit = _digit(tl.load(source + at, mask=live, other=0), infinity, flip, step * 8)
    to = counts + tl.program_id(0).to(tl.int64) * DIGITS + tl.arange(0, DIGITS)
    tl.store(to, tl.histogram(digit, DIGITS, mask=live))


@triton.jit
def radix_offsets(offsets, totals, flags, counts, n, tiles, rows, step, BLOCK: tl.constexpr):
    """How often each digit occurs before each tile of its row, and in the row; flags[step, row, group]: whether one digit of the group is that of all elements."""
    row = tl.program_id(0) // GROUPS
    group = tl.program_id(0) % GROUPS
    digit = group * GROUP + tl.arange(0, GROUP)
    base = row.to(tl.int64) * tiles * DIGITS
    before = tl.zeros([GROUP], tl.int32)
    for first in range(0, tiles, BLOCK):
        tile = first + tl.arange(0, BLOCK)[:, None]
        at = base + tile.to(tl.int64) * DIGITS + digit[None, :]
        found = tl.load(counts + at, mask=tile < tiles, other=0)
        tl.store(offsets + at, before[None, :] + tl.cumsum(found, 0) - found, mask=tile < tiles)
        before += tl.sum(found, 0)
    tl.store(totals + row * DIGITS + digit, before)
    tl.store(flags + (step * rows + row) * GROUPS + group, tl.max((before == n).to(tl.int32), 0))


@triton.jit
def radix_scatter(
    values, indices, x, spare, places, counts, offsets, totals, flags, n, tiles, rows, step, infinity, flip,
    LAST: tl.constexpr, LINES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Moves each element and its index to its place by the digit; LAST: to the results, also in rows that rest."""
    row = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    moves = _moves(flags, rows, row, step)
    rests = tl.max(tl.load(flags + (step * rows + row) * GROUPS + tl.arange(0, GROUPS)), 0)
    base = row.to(tl.int64) * n
    half = rows.to(tl.int64) * n
    begin = tile * BLOCK
    left = n - begin
    previous = base + ((moves - 1) & 1) * half + begin
    if moves == 0:
        source = x + (base + begin)
    else:
        source = spare + previous
    places += previous
    moved = moves > 0
    p = tl.arange(0, BLOCK)
    live = p < left
    if rests:
        if LAST:
            place = tl.load(places + p, mask=live & moved, other=0)
            place = tl.where(moved, place, begin + p)
            tl.store(values + (base + begin) + p, tl.load(source + p, mask=live), mask=live)
            tl.store(indices + (base + begin) + p, place.to(tl.int64), mask=live)
        return
    # Neighbours lie in neighbouring threads, and after turning the tile a thread holds LINES of its elements, one after another.
    WIDTH: tl.constexpr = BLOCK // LINES
    j = tl.arange(0, LINES)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    bits = tl.load(source + j, mask=j < left, other=0)
    digit = tl.where(j < left, _digit(bits, infinity, flip, step * 8), DIGITS)
    packed = bitonic(tl.reshape(tl.trans(digit * BLOCK + j), [BLOCK]), LINES)
    packed = tl.gather(
        packed, p, 0
    )  # exchanged once, so that neighbouring threads store neighbours
    lane = tl.arange(0, DIGITS)
    table = tl.program_id(0).to(tl.int64) * DIGITS + lane
    # Smaller digits of the row are before, those of the tile are counted by the place.
    elsewhere = tl.load(totals + row * DIGITS + lane) - tl.load(counts + table)
    start = tl.cumsum(elsewhere, 0) - elsewhere + tl.load(offsets + table)
    to = p + tl.gather(start, (packed // BLOCK) & (DIGITS - 1), 0)
    at = packed & (BLOCK - 1)
    place = tl.load(places + at, mask=live & moved, other=0)
    place = tl.where(moved, place, begin + at)
    if not LAST:
        base += (moves & 1) * half
    tl.store(values + base + to, tl.load(source + at, mask=live), mask=live)
    tl.store(indices + base + to, place.to(indices.dtype.element_ty), mask=live)


_WALK = {"n": "i32", "tiles": "i32", "rows": "i32", "step": "i32"}
_KEY = {"infinity": "i64", "flip": "i64"}
_WIDTHS = ["int32", "int64", "int16", "int8"]

# Indices are sorted by every gradient of a large embedding, and by `unique`, often as int32.
_DEFAULT = {"T": ["int32", "int64"], "O": ["int32", "int64"]}

KERNELS = [
    Kernel(
        radix_count,
        signature={"counts": "*i32", "x": "*T", "spare": "*T", "flags": "*i32", **_WALK, **_KEY},
        types={"T": _WIDTHS},
        constants={"BLOCK": [2048]},
        default=_DEFAULT,
    ),
    Kernel(
        radix_offsets,
        signature={"offsets": "*i32", "totals": "*i32", "flags": "*i32", "counts": "*i32", **_WALK},
        constants={"BLOCK": [512, 32]},
        num_warps=lambda v: 8 if v["BLOCK"] == 512 else 1,
    ),
    Kernel(
        radix_scatter,
        signature={
            "values": "*T",
            "indices": "*O",
            "x": "*T",
            "spare": "*T",
            "places": "*i32",
            "counts": "*i32",
            "offsets": "*i32",
            "totals": "*i32",
            "flags": "*i32",
            **_WALK,
            **_KEY,
        },
        types={"T": _WIDTHS, "O": ["int32", "int64"]},
        constants={"LAST": [False, True], "LINES": [16], "BLOCK": [2048]},
        default=_DEFAULT,
        wheel=lambda v: v["LAST"] == (v["O"] == "int64"),
    ),
]
