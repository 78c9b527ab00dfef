"""Stable sorting of rows of up to 256 elements, of 1024 narrow ones (longer ones: radix.py), and the first k of rows: sort, argsort, topk.

Narrow elements side by side are sorted in registers (`sort_rows`); others are packed into memory first.

An element's key is a 32-bit integer in the order of the values (NaN above all and all equal, -0.0 equal to 0.0; inverted for descending
order). Key and position make one 64-bit integer (`packed`), so equal elements keep their order and no two are equal.

64-bit elements are sorted twice, by the low half of their key and then stably by the high half: digits of a radix sort.
"""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel, Variant

LAST = tl.constexpr((1 << 63) - 1)  # above every packed element


@triton.jit
def ordered_key(x):
    """Signed integers of the elements' width in the order of the values, as int32, or int64 for 64-bit elements."""
    if x.dtype == tl.float64:
        bits = x.to(tl.int64, bitcast=True)
        key = tl.where(x == 0, 0, bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF))
        key = tl.where(x != x, 0x7FFFFFFFFFFFFFFF, key)
    elif x.dtype.is_floating() and x.dtype.primitive_bitwidth == 16:
        bits = x.to(tl.int16, bitcast=True).to(tl.int32)
        wide = x.to(tl.float32)
        key = tl.where(wide == 0, 0, bits ^ ((bits >> 15) & 0x7FFF))
        key = tl.where(wide != wide, 0x7FFF, key)
    elif x.dtype.is_floating():
        wide = x.to(tl.float32)
        bits = wide.to(tl.int32, bitcast=True)
        key = tl.where(wide == 0, 0, bits ^ ((bits >> 31) & 0x7FFFFFFF))
        key = tl.where(wide != wide, 0x7FFFFFFF, key)
    else:
        WIDE: tl.constexpr = tl.int64 if x.dtype.primitive_bitwidth == 64 else tl.int32
        key = x.to(WIDE)
        if x.dtype.is_int_unsigned():
            key = key + -(1 << (x.dtype.primitive_bitwidth - 1))
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
    """Sorts rows of n <= BLOCK elements in place, several at a time."""
    ROWS: tl.constexpr = 1024 // BLOCK
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, BLOCK)[None, :]
    live = (r < rows) & (c < n)
    p = packed + r.to(tl.int64) * n + c
    tl.store(p, tl.sort(tl.load(p, mask=live, other=LAST)), mask=live)


@triton.jit
def bits_key(bits, infinity, flip):
    """Keys, as int32, of elements that are given as integers of their width. infinity: that of a floating-point dtype, as an integer, or 0; the keys' bits of `flip` are inverted."""
    BITS: tl.constexpr = bits.dtype.primitive_bitwidth
    key = bits.to(tl.int32)
    if infinity != 0:
        GREATEST: tl.constexpr = (1 << (BITS - 1)) - 1
        magnitude = key & GREATEST
        key = tl.where(key < 0, 0 - magnitude, magnitude)
        key = tl.where(magnitude > infinity.to(key.dtype), GREATEST, key)
    return key ^ flip.to(key.dtype)


@triton.constexpr_function
def _log2(n):
    return n.bit_length() - 1


@triton.jit
def _bit(DIMS: tl.constexpr, i: tl.constexpr):
    """Bit i of the places of a hypercube."""
    return tl.reshape(tl.arange(0, 2), [1] * (DIMS - i - 1) + [2] + [1] * i)


@triton.jit
def _turned(h, DIMS: tl.constexpr, i: tl.constexpr, LAST_STAGE: tl.constexpr):
    """Inverted where bit i of the place is set, so that what is to descend there ascends; not at first and at last."""
    if i > 0 and i < LAST_STAGE:
        h ^= (0 - _bit(DIMS, i)).to(h.dtype)
    return h


@triton.jit
def _exchanged(h, DIMS: tl.constexpr, i: tl.constexpr, LINES: tl.constexpr):
    other = h ^ tl.xor_sum(h, DIMS - 1 - i, True)
    right = _bit(DIMS, i) != 0
    if 1 << i < LINES:  # both are in one thread
        return tl.where(right, tl.maximum(h, other), tl.minimum(h, other))
    else:
        return tl.where((h > other) != right, other, h)


@triton.jit
def bitonic(x, LINES: tl.constexpr, BLOCK: tl.constexpr):
    """Sorts each BLOCK elements of a vector of integers, of which each thread holds LINES neighbours."""
    DIMS: tl.constexpr = _log2(x.numel)
    STAGES: tl.constexpr = _log2(BLOCK)
    h = tl.reshape(x, [2] * DIMS)
    for stage in tl.static_range(1, STAGES + 1):
        h = _turned(_turned(h, DIMS, stage - 1, STAGES), DIMS, stage, STAGES)
        for i in tl.static_range(stage):
            h = _exchanged(h, DIMS, stage - 1 - i, LINES)
    return tl.reshape(h, x.shape)


@triton.jit
def sort_rows(
    values, indices, x, rows, n, k, infinity, flip, LINES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The first k of each of ROWS rows of n <= BLOCK elements of 32 bits or fewer, given as integers, sorted in registers; LINES elements a thread."""
    WIDTH: tl.constexpr = BLOCK // LINES
    first = tl.program_id(0).to(tl.int64) * ROWS
    left = tl.minimum(rows - first, ROWS).to(tl.int32)
    x += first * n
    column = tl.arange(0, ROWS * WIDTH)[None, :]
    r = column // WIDTH
    j = tl.arange(0, LINES)[:, None] * WIDTH + column % WIDTH
    live = (j < n) & (r < left)
    key = bits_key(tl.load(x + (r * n + j), mask=live, other=0), infinity, flip)
    if x.dtype.element_ty.primitive_bitwidth < 32:  # key and place have 28 bits at most
        packed = tl.where(live, key * BLOCK + j, 0x7FFFFFFF)
    else:
        packed = tl.where(live, key.to(tl.int64) * BLOCK + j, LAST)
    packed = bitonic(tl.reshape(tl.trans(packed), [ROWS * BLOCK]), LINES, BLOCK)
    p = tl.arange(0, ROWS * BLOCK)
    # Exchanged once, so that neighbouring threads store neighbours.
    at = tl.gather((packed & (BLOCK - 1)).to(tl.int32), p, 0)
    r = p // BLOCK
    place = p % BLOCK
    live = (place < k) & (r < left)
    to = first * k + (r * k + place)
    tl.store(values + to, tl.load(x + (r * n + at), mask=live), mask=live)
    tl.store(indices + to, at.to(tl.int64), mask=live)


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


@triton.jit
def _least_of_first(key, k, BITS: tl.constexpr):
    """The k-th greatest of a tile of keys of BITS bits, bit by bit from the highest one."""
    least = tl.full([], -(1 << (BITS - 1)), tl.int64)
    for i in range(BITS):
        bit = tl.full([], 1, tl.int64) << (BITS - 1 - i)
        enough = tl.sum((key >= (least + bit).to(tl.int32)).to(tl.int32), 0) >= k
        least += tl.where(enough, bit, 0)
    return least.to(tl.int32)


@triton.jit
def topk_rows(
    values, indices, scratch, x, n, k, inner, LARGEST: tl.constexpr, KEEP: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The first k of each row of n <= BLOCK elements of `x` (outer, n, inner): those above the k-th key, and as many equal ones as are missing.

    `scratch` has room for k packed elements a row, which are sorted in registers.
    """
    r = tl.program_id(0).to(tl.int64)
    x += (r // inner) * n * inner + r % inner
    j = tl.arange(0, BLOCK)
    live = j < n
    key = ordered_key(tl.load(x + j.to(tl.int64) * inner, mask=live, other=0))
    BITS: tl.constexpr = x.dtype.element_ty.primitive_bitwidth
    if not LARGEST:
        key = ~key
    key = tl.where(
        live, key, -(1 << (BITS - 1))
    )  # behind those of the row, which come first among equals
    least = _least_of_first(key, k, BITS)
    # Counts of greater and of equal keys in one scan.
    ones = tl.where(key > least, 1, tl.where(key == least, 65536, 0))
    upto = tl.cumsum(ones, 0)
    above = tl.sum(ones, 0) & 0xFFFF
    slot = tl.where(key > least, upto & 0xFFFF, above + (upto >> 16)) - 1
    scratch += r * k
    tl.store(scratch + slot, ((~key).to(tl.int64) << 32) | j, mask=(key >= least) & (slot < k))
    tl.debug_barrier()
    lane = tl.arange(0, KEEP)
    first = lane < k
    at = tl.sort(tl.load(scratch + lane, mask=first, other=LAST)) & 0xFFFFFFFF
    to = (r // inner * k + lane) * inner + r % inner
    tl.store(values + to, tl.load(x + at * inner, mask=first), mask=first)
    tl.store(indices + to, at, mask=first)


KTH = tl.constexpr(0)
MEDIAN = tl.constexpr(1)
NANMEDIAN = tl.constexpr(2)


@triton.jit
def order_statistic(
    values, indices, x, n, k, inner, KIND: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """One element of each row of n <= BLOCK elements of `x` (outer, n, inner) in a stable ascending order, NaN last: the k-th from 0, or a median."""
    r = tl.program_id(0).to(tl.int64)
    x += (r // inner) * n * inner + r % inner
    j = tl.arange(0, BLOCK)
    live = j < n
    value = tl.load(x + j.to(tl.int64) * inner, mask=live, other=0)
    BITS: tl.constexpr = x.dtype.element_ty.primitive_bitwidth
    # Greatest first; what is behind the row is equal to the last ones at most, and comes after them.
    key = tl.where(live, ~ordered_key(value), -(1 << (BITS - 1)))
    rank = k
    if KIND != KTH:
        number = value.to(tl.float32)
        numbers = tl.sum((live & (number == number)).to(tl.int32), 0)
        if KIND == MEDIAN:  # the first NaN, if there is one
            rank = tl.where(numbers < n, numbers, (n - 1) // 2)
        else:
            rank = tl.maximum((numbers - 1) // 2, 0)
    least = _least_of_first(key, rank + 1, BITS)
    equal = (key == least).to(tl.int32)
    place = tl.sum((key > least).to(tl.int32), 0) + tl.cumsum(equal, 0) - 1
    at = tl.sum(tl.where((equal != 0) & (place == rank), j, 0), 0).to(tl.int64)
    tl.store(values + r, tl.load(x + at * inner))
    tl.store(indices + r, at)


_NARROW = ["float32", "bfloat16", "int32", "float16", "int16", "int8", "uint8", "uint16", "uint32"]
_WIDE = ["int64", "float64", "uint64"]
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
_TOPK_ROWS = {
    "values": "*T",
    "indices": "*i64",
    "scratch": "*i64",
    "x": "*T",
    "n": "i32",
    "k": "i32",
    "inner": "i64",
}
_TOPK = {"out": "*i64", "x": "*T", "n": "i32", "inner": "i32"}


def _packs(variant: Variant) -> bool:
    """64-bit keys are packed in two parts, others in one."""
    return bool((variant["PART"] == 0) == (variant["T"] in _NARROW))


def _selects(variant: Variant) -> bool:
    """Elements are packed at first, and int64 afterwards; usually a few of the largest floats are asked for, or many in float32."""
    if variant["FIRST"]:
        return bool(
            variant["LARGEST"]
            and (
                variant["T"] == "float32" or (variant["T"] == "bfloat16" and variant["KEEP"] == 16)
            )
        )
    return bool(variant["T"] == "int64" and not variant["LARGEST"] and variant["KEEP"] == 128)


KERNELS = [
    Kernel(
        sort_pack,
        signature=_PACK,
        types={"T": [*_NARROW, *_WIDE], "I": _OFFSETS},
        constants={"PART": [0, 1, 2], "DESCENDING": [False, True], "BLOCK": [1024]},
        default={"T": ["float32", "bfloat16", "int64", "int32"]},
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
        constants={"BLOCK": [256, 64, 16]},
        num_warps=8,
    ),
    Kernel(
        sort_rows,
        signature={
            "values": "*T",
            "indices": "*i64",
            "x": "*T",
            "rows": "i64",
            "n": "i32",
            "k": "i32",
            "infinity": "i64",
            "flip": "i64",
        },
        types={"T": ["int32", "int16", "int8"]},
        constants={
            "LINES": [16],
            "ROWS": [1, 8, 16, 32, 128],
            "BLOCK": [16, 64, 128, 256, 512, 1024],
        },
        default={"T": ["int32", "int16"]},
        num_warps=lambda v: v["ROWS"] * v["BLOCK"] // v["LINES"] // 32,
        wheel=lambda v: v["ROWS"] == (1 if v["BLOCK"] > 256 else 2048 // v["BLOCK"]),
    ),
    Kernel(
        order_statistic,
        signature={
            "values": "*T",
            "indices": "*i64",
            "x": "*T",
            "n": "i32",
            "k": "i32",
            "inner": "i64",
        },
        types={"T": _NARROW},
        constants={"KIND": [1, 0, 2], "BLOCK": [1024, 4096, 16384]},
        num_warps=lambda v: 16 if v["BLOCK"] == 16384 else 4,
        wheel=lambda v: v["T"] == "float32" and v["KIND"] == 1 and v["BLOCK"] < 16384,
    ),
    Kernel(
        topk_rows,
        signature=_TOPK_ROWS,
        types={"T": _NARROW},
        constants={"LARGEST": [True, False], "KEEP": [16, 128, 1024], "BLOCK": [1024, 4096, 16384]},
        num_warps=lambda v: 16 if v["BLOCK"] == 16384 else 4,
        wheel=lambda v: v["LARGEST"] and v["KEEP"] == 16 and v["BLOCK"] < 16384,
    ),
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
