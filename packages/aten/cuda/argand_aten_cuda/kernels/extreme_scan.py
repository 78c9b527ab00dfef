"""Where the last of the largest (or smallest) elements so far lies, along a dimension: cummax and cummin.

An element is its key (sort.ordered_key) and its place; of two, the one with the greater key counts, of equal keys the later one. Few long rows are
cut into pieces: `extremes_of_pieces` finds each piece's, and each program of `latest_extreme` begins with those of the pieces before its own.
ALIGNED: addresses and n are multiples of 16.
"""

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl

from argand_aten_cuda.kernel import REAL, Kernel, Variant
from argand_aten_cuda.kernels.sort import ordered_key


@triton.jit
def _later(ka, pa, kb, pb):
    takes = (kb > ka) | ((kb == ka) & (pb > pa))
    return tl.where(takes, kb, ka), tl.where(takes, pb, pa)


@triton.jit
def _elements(x, at, place, live, SMALLEST: tl.constexpr):
    """Keys and places; those that are not live are before all others."""
    value = tl.load(x + at, mask=live, other=0)
    key = ordered_key(value)
    BITS: tl.constexpr = key.dtype.primitive_bitwidth
    if SMALLEST:
        key = ~key
        if value.dtype.is_floating():
            NAN: tl.constexpr = -(1 << (value.dtype.primitive_bitwidth - 1))
            key = tl.where(key == NAN, (1 << (BITS - 1)) - 1, key)  # a NaN wins
    return tl.where(live, key, -(1 << (BITS - 1))), tl.where(live, place, -1)


@triton.jit
def _rows(n, outer, inner, BR: tl.constexpr, ALONG: tl.constexpr):
    """The numbers of a program's rows, where they begin, and which there are. Elements lie `inner` apart; ALONG: side by side."""
    lane = tl.arange(0, BR)
    if ALONG:
        row = tl.program_id(0).to(tl.int64) * BR + lane
        first = row * n
        here = row < outer
    else:
        tiles = (inner + BR - 1) // BR
        place = (tl.program_id(0) // tiles).to(tl.int64) * inner
        column = (tl.program_id(0) % tiles) * BR + lane
        row = place + column
        first = place * n + column
        here = column < inner
    return row, first, here


@triton.jit
def _piece(n, piece, ALIGNED: tl.constexpr):
    """Where a program's piece begins, and how long it is: no place beyond n is formed, which may be next to 2**31."""
    begin = tl.program_id(1) * piece
    length = tl.minimum(piece, n - begin)
    if ALIGNED:
        length = tl.multiple_of(length, 16)
    return begin, length


@triton.jit
def _step(x, first, here, begin, k, length, inner, SMALLEST: tl.constexpr, BN: tl.constexpr, ALONG: tl.constexpr):  # fmt: skip
    """Of BN elements of each row, from the k-th of its piece on: where they lie, which there are, their keys and places."""
    lane = k + tl.arange(0, BN)
    place = (begin + lane)[None, :]
    at = first[:, None] + place.to(tl.int64) * (1 if ALONG else inner)
    live = here[:, None] & (lane < length)[None, :]
    key, place = _elements(x, at, place, live, SMALLEST)
    return at, live, key, place


@triton.jit
def extremes_of_pieces(
    parts, x, rows, n, outer, inner, piece, pieces,
    SMALLEST: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr, ALONG: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """The extreme of each row's piece: parts[key or place, row, piece]."""
    row, first, here = _rows(n, outer, inner, BR, ALONG)
    begin, length = _piece(n, piece, ALIGNED)
    _, _, key, at = _step(x, first, here, begin, 0, length, inner, SMALLEST, BN, ALONG)
    for k in range(BN, length, BN):
        _, _, other, place = _step(x, first, here, begin, k, length, inner, SMALLEST, BN, ALONG)
        key, at = _later(key, at, other, place)
    key, at = tl.reduce((key, at), 1, _later)
    to = parts + row * pieces + tl.program_id(1)
    tl.store(to, key.to(tl.int64), mask=here)
    tl.store(to + rows * pieces, at.to(tl.int64), mask=here)


@triton.jit
def latest_extreme(
    out, x, parts, rows, n, outer, inner, piece, pieces,
    SMALLEST: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr, ALONG: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """Of each element the place of the latest extreme up to it; of several pieces, `parts` is as above."""
    row, first, here = _rows(n, outer, inner, BR, ALONG)
    begin, length = _piece(n, piece, ALIGNED)
    lane = tl.arange(0, BN)
    none = tl.zeros([BR, BN], tl.int32) < 0
    key, at = _elements(x, first[:, None] + lane[None, :], lane[None, :], none, SMALLEST)
    for q in range(0, tl.program_id(1), BN):
        known = here[:, None] & (q + lane < tl.program_id(1))[None, :]
        from_ = parts + row[:, None] * pieces + (q + lane)[None, :]
        k = tl.load(from_, mask=known, other=0).to(key.dtype)
        p = tl.load(from_ + rows * pieces, mask=known, other=-1).to(tl.int32)
        k, p = _later(key, at, k, p)
        key, at = tl.where(known, k, key), tl.where(known, p, at)
    last_key, last_at = tl.reduce((key, at), 1, _later)
    for k in range(0, length, BN):
        to, live, key, at = _step(x, first, here, begin, k, length, inner, SMALLEST, BN, ALONG)
        so_far, latest = tl.associative_scan((key, at), 1, _later)
        so_far, latest = _later(last_key[:, None], last_at[:, None], so_far, latest)
        tl.store(out + to, latest.to(tl.int64), mask=live)
        step_key, step_at = tl.reduce((key, at), 1, _later)
        last_key, last_at = _later(last_key, last_at, step_key, step_at)


# (rows, elements) of a program's step.
_TILES = {True: ((1, 2048), (16, 64)), False: ((64, 32),)}


def _is_tile(v: Variant) -> bool:
    return (v["BR"], v["BN"]) in _TILES[v["ALONG"]] and (v["ALONG"] or not v["ALIGNED"])


def _aligned(v: Variant) -> tuple[str, ...]:
    return ("x", "n", "piece") if v["ALIGNED"] else ()


_WALK = {"rows": "i64", "n": "i32", "outer": "i64", "inner": "i64", "piece": "i32", "pieces": "i32"}
_CONSTANTS: dict[str, Sequence[Any]] = {
    "SMALLEST": [False, True],
    "BR": [1, 16, 64],
    "BN": [2048, 64, 32],
    "ALONG": [True, False],
    "ALIGNED": [True, False],
}

KERNELS = [
    Kernel(
        extremes_of_pieces,
        signature={"parts": "*i64", "x": "*T", **_WALK},
        types={"T": REAL},
        constants=_CONSTANTS,
        default={"T": ["float32"]},
        divisible=_aligned,
        wheel=lambda v: _is_tile(v) and v["BR"] != 16,
    ),
    Kernel(
        latest_extreme,
        signature={"out": "*i64", "x": "*T", "parts": "*i64", **_WALK},
        types={"T": REAL},
        constants=_CONSTANTS,
        default={"T": ["float32"]},
        divisible=lambda v: (*_aligned(v), "out") if v["ALIGNED"] else (),
        wheel=_is_tile,
    ),
]
