"""Stable sorting of rows, and the first k of them: sort, argsort, topk.

An element's key is a 32-bit integer in the order of the values (NaN above all and all equal, -0.0 equal to 0.0; inverted for descending
order). Key and position make one 64-bit integer (`packed`), so equal elements keep their order and no two are equal. Tiles of rows are
sorted in registers, then runs are merged in pairs: `merge_splits` finds for each tile of the result how much of it comes from the first
run (merge path, Green, McColl and Bader 2012), `merge_tiles` loads that as one bitonic sequence and merges it.

64-bit elements are sorted twice, by the low half of their key and then stably by the high half: digits of a radix sort.
"""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel, Variant

LAST = tl.constexpr((1 << 63) - 1)  # above every packed element


@triton.jit
def ordered_key(x):
    """Integers in the order of the values: int32, or int64 for 64-bit elements."""
    if x.dtype == tl.float64:
        bits = x.to(tl.int64, bitcast=True)
        key = tl.where(x == 0, 0, bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF))
        key = tl.where(x != x, 0x7FFFFFFFFFFFFFFF, key)
    elif x.dtype.is_floating():
        wide = x.to(tl.float32)
        bits = wide.to(tl.int32, bitcast=True)
        key = tl.where(wide == 0, 0, bits ^ ((bits >> 31) & 0x7FFFFFFF))
        key = tl.where(wide != wide, 0x7FFFFFFF, key)
    elif x.dtype == tl.int64:
        key = x
    else:
        key = x.to(tl.int32)
    return key


@triton.jit
def _packed(x, position, PART: tl.constexpr, DESCENDING: tl.constexpr):
    """Key in the upper half, position in the lower. PART 0: a 32-bit key; 1 and 2: the low and the high half of a 64-bit one."""
    key = ordered_key(x)
    if DESCENDING:
        key = ~key
    if PART == 1:
        high = (key ^ 0x80000000) << 32
    elif PART == 2:
        high = (key >> 32) << 32
    else:
        high = key.to(tl.int64) << 32
    return high | position.to(tl.int64)


@triton.jit
def sort_pack(
    out,
    x,
    previous,
    total,
    n,
    inner,
    PART: tl.constexpr,
    DESCENDING: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Packed elements of `x` (outer, n, inner) as rows of n; with PART 2 in the order that `previous` gives."""
    e = tl.program_id(0).to(total.dtype) * BLOCK + tl.arange(0, BLOCK)
    live = e < total
    r = e // n
    j = e - r * n
    at = j
    if PART == 2:
        at = (tl.load(previous + e, mask=live, other=0) & 0xFFFFFFFF).to(total.dtype)
    value = tl.load(x + ((r // inner) * n + at) * inner + r % inner, mask=live, other=0)
    tl.store(out + e, _packed(value, j, PART, DESCENDING), mask=live)


@triton.jit
def sort_unpack(
    values,
    indices,
    x,
    packed,
    previous,
    total,
    n,
    k,
    stride,
    inner,
    SECOND: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The first k of each packed row (`stride` apart) as values of `x` (outer, n, inner) and their positions."""
    e = tl.program_id(0).to(total.dtype) * BLOCK + tl.arange(0, BLOCK)
    live = e < total
    r = e // k
    j = e - r * k
    at = tl.load(packed + r * stride + j, mask=live, other=0) & 0xFFFFFFFF
    if SECOND:
        at = tl.load(previous + r * n + at.to(total.dtype), mask=live, other=0) & 0xFFFFFFFF
    outer = r // inner
    i = r - outer * inner
    value = tl.load(x + (outer * n + at.to(total.dtype)) * inner + i, mask=live, other=0)
    to = (outer * k + j) * inner + i
    tl.store(values + to, value, mask=live)
    tl.store(indices + to, at, mask=live)


@triton.jit
def sort_tiles(packed, rows, n, BLOCK: tl.constexpr):
    """Sorts runs of BLOCK elements of each row of n, in place; short rows several at a time."""
    ROWS: tl.constexpr = 1024 // BLOCK if BLOCK < 1024 else 1
    tiles = tl.cdiv(n, BLOCK)
    pid = tl.program_id(0)
    r = (pid // tiles) * ROWS + tl.arange(0, ROWS)[:, None]
    c = (pid % tiles) * BLOCK + tl.arange(0, BLOCK)[None, :]
    live = (r < rows) & (c < n)
    p = packed + r.to(tl.int64) * n + c
    tl.store(p, tl.sort(tl.load(p, mask=live, other=LAST)), mask=live)


@triton.jit
def merge_splits(
    splits, packed, total, tiles, n, run, steps, TILE: tl.constexpr, BLOCK: tl.constexpr
):
    """For each tile of TILE elements of the merged runs: how many elements before it come from the first of its two runs."""
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = e < total
    start = (e % tiles).to(tl.int64) * TILE
    first = start - start % (2 * run)
    a = packed + (e // tiles).to(tl.int64) * n + first
    len_a = tl.minimum(run, n - first)
    len_b = tl.minimum(run, n - first - len_a)
    diagonal = start - first
    low = tl.maximum(diagonal - len_b, 0)
    high = tl.minimum(diagonal, len_a)
    for _ in range(steps):
        searching = live & (low < high)
        middle = (low + high) // 2
        below = tl.load(a + middle, mask=searching, other=0) < tl.load(
            a + len_a + diagonal - 1 - middle, mask=searching, other=0
        )
        low = tl.where(searching & below, middle + 1, low)
        high = tl.where(searching & ~below, middle, high)
    tl.store(splits + e, low, mask=live)


@triton.jit
def _ascending(bitonic, LOG: tl.constexpr):
    """Sorts a bitonic sequence of 2**LOG elements: halves, quarters, ... are compared element by element."""
    h = tl.reshape(bitonic, [2] * LOG)
    for i in tl.static_range(LOG):
        partner = h ^ tl.xor_sum(h, i, keep_dims=True)
        second = tl.reshape(tl.arange(0, 2), [1] * i + [2] + [1] * (LOG - 1 - i))
        h = tl.where(second == 1, tl.maximum(h, partner), tl.minimum(h, partner))
    return tl.reshape(h, bitonic.shape)


@triton.jit
def merge_tiles(out, packed, splits, tiles, n, run, TILE: tl.constexpr, LOG: tl.constexpr):
    """Merges pairs of sorted runs of each row, a tile of the result a program."""
    pid = tl.program_id(0)
    tile = pid % tiles
    row = (pid // tiles).to(tl.int64) * n
    start = tile.to(tl.int64) * TILE
    first = start - start % (2 * run)
    len_a = tl.minimum(run, n - first)
    len_b = tl.minimum(run, n - first - len_a)
    count = tl.minimum(TILE, first + len_a + len_b - start)
    from_a = tl.load(splits + pid)
    last = start + TILE >= first + len_a + len_b
    until_a = tl.load(splits + pid + 1, mask=~last, other=0)
    in_a = tl.where(last, len_a, until_a) - from_a
    from_b = start - first - from_a
    j = tl.arange(0, TILE)
    a = packed + row + first + from_a + j
    b = (
        packed + row + first + len_a + from_b + (TILE - 1 - j)
    )  # from the back: ascending, then descending
    h = tl.load(a, mask=j < in_a, other=LAST)
    h = tl.minimum(h, tl.load(b, mask=TILE - 1 - j < count - in_a, other=LAST))
    tl.store(out + row + start + j, _ascending(h, LOG), mask=j < count)


@triton.jit
def topk_tiles(
    out,
    x,
    n,
    inner,
    FIRST: tl.constexpr,
    LARGEST: tl.constexpr,
    KEEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The KEEP least packed elements of each BLOCK of a row of n, in order; FIRST packs elements of `x` (outer, n, inner)."""
    tiles = tl.cdiv(n, BLOCK)
    pid = tl.program_id(0)
    r = (pid // tiles).to(tl.int64)
    j = (pid % tiles) * BLOCK + tl.arange(0, BLOCK)
    live = j < n
    if FIRST:
        value = tl.load(x + ((r // inner) * n + j) * inner + r % inner, mask=live, other=0)
        packed = tl.where(live, _packed(value, j, 0, LARGEST), LAST)
    else:
        packed = tl.load(x + r * n + j, mask=live, other=LAST)
    tl.store(out + pid.to(tl.int64) * KEEP + tl.arange(0, KEEP), ~tl.topk(~packed, KEEP))


_NARROW = ["float32", "bfloat16", "int32", "float16", "int16", "int8", "uint8"]
_WIDE = ["int64", "float64"]
_SIZES = ["int32", "int16", "int64", "int8"]
_OFFSETS = ["int32", "int64"]
_PACK = {"out": "*i64", "x": "*T", "previous": "*i64", "total": "I", "n": "I", "inner": "I"}
_UNPACK = {
    "values": "*T",
    "indices": "*i64",
    "x": "*T",
    "packed": "*i64",
    "previous": "*i64",
    "total": "I",
    "n": "I",
    "k": "I",
    "stride": "I",
    "inner": "I",
}
_SPLITS = {
    "splits": "*i64",
    "packed": "*i64",
    "total": "i32",
    "tiles": "i32",
    "n": "i64",
    "run": "i64",
    "steps": "i32",
}
_MERGE = {
    "out": "*i64",
    "packed": "*i64",
    "splits": "*i64",
    "tiles": "i32",
    "n": "i64",
    "run": "i64",
}
_TOPK = {"out": "*i64", "x": "*T", "n": "i32", "inner": "i32"}


def _packs(variant: Variant) -> bool:
    """64-bit keys are packed in two parts, others in one."""
    return (variant["PART"] == 0) == (variant["T"] in _NARROW)


def _selects(variant: Variant) -> bool:
    """Elements are packed at first, and int64 afterwards."""
    return (
        variant["T"] != "int64"
        if variant["FIRST"]
        else variant["T"] == "int64" and not variant["LARGEST"]
    )


KERNELS = [
    Kernel(
        sort_pack,
        signature=_PACK,
        types={"T": [*_NARROW, *_WIDE], "I": _OFFSETS},
        constants={"PART": [0, 1, 2], "DESCENDING": [False, True], "BLOCK": [1024]},
        default={"T": ["float32", "bfloat16", "int64"]},
        wheel=_packs,
    ),
    Kernel(
        sort_unpack,
        signature=_UNPACK,
        types={"T": _SIZES, "I": _OFFSETS},
        constants={"SECOND": [False, True], "BLOCK": [1024]},
        default={"T": ["int32", "int16", "int64"]},
    ),
    Kernel(
        sort_tiles,
        signature={"packed": "*i64", "rows": "i32", "n": "i32"},
        constants={"BLOCK": [2048, 1024, 256, 64, 16]},
        num_warps=8,
    ),
    Kernel(merge_splits, signature=_SPLITS, constants={"TILE": [2048], "BLOCK": [128]}),
    Kernel(merge_tiles, signature=_MERGE, constants={"TILE": [2048], "LOG": [11]}, num_warps=8),
    Kernel(
        topk_tiles,
        signature=_TOPK,
        types={"T": [*_NARROW, "int64"]},
        constants={
            "FIRST": [True, False],
            "LARGEST": [True, False],
            "KEEP": [16, 128],
            "BLOCK": [2048],
        },
        default={"T": ["float32", "bfloat16", "int64"]},
        num_warps=8,
        wheel=_selects,
    ),
]
