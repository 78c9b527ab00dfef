"""Elements at positions that tensors of indices give: index, gather, scatter, index_select, index_add, embedding.

Each is one walk over places with up to four dimensions (the host merges what it can): `rows` combinations of the first three, `cols` of
the last. A place has an offset in the indexed tensor `x` without its indexed dimension, one in `index`, and one in the other tensor; the
indexed dimension adds index * `step`. Elements are moved as integers of their size, so no dtype but that of sums matters.

An index outside [lower, limit) is reported in the device's error record (docs/notes/cuda_kernels.md), unless `op` is 0, and its element is skipped.
"""

import triton
import triton.language as tl

from argand_aten_cuda.kernel import REAL, Kernel, Variant
from argand_aten_cuda.kernels.sort import ordered_key

INVALID = tl.constexpr(-(1 << 58))  # in a table of offsets: an index that was reported already


@triton.jit
def _tile(rows, cols, BLOCK: tl.constexpr):
    """Rows (as a column), columns (as a row) and mask of this program's tile of 1024 places, BLOCK columns wide."""
    tiles = tl.cdiv(cols, BLOCK)
    pid = tl.program_id(0)
    r = (pid // tiles) * (1024 // BLOCK) + tl.arange(0, 1024 // BLOCK)[:, None]
    c = (pid % tiles) * BLOCK + tl.arange(0, BLOCK)[None, :]
    return r, c, (r < rows) & (c < cols)


@triton.jit
def _row_offset(r, n1, n2, s0, s1, s2, RANK: tl.constexpr):
    """Offset of row `r` of a walk whose second and third sizes are n1 and n2; with RANK 2 a row is one dimension."""
    if RANK == 2:
        offset = r * s0
    else:
        q = r // n2
        offset = (q // n1) * s0 + (q % n1) * s1 + (r % n2) * s2
    return offset


@triton.jit
def _checked(v, live, lower, limit, error, op, info):
    """Indices from zero, and which of them are usable; reports the others."""
    good = (v >= lower) & (v < limit)
    bad = live & (v != INVALID) & ~good & (op != 0)
    zero = tl.zeros(v.shape, tl.int32)
    tl.store(error + 1 + zero, v, mask=bad)
    tl.store(error + 2 + zero, zero + info, mask=bad)
    tl.store(error + zero, zero + op, mask=bad)
    return tl.where(v < 0, v + limit, v), live & good


@triton.jit
def gather_elements(
    out, x, index, error, op, info, rows, cols, limit, lower, step, n1, n2, x0, x1, x2, x3, i0, i1, i2, i3,
    BLOCK: tl.constexpr, RANK: tl.constexpr, PER_ROW: tl.constexpr,
):  # fmt: skip
    """out[place] = x[place without the indexed dimension + index[place] * step]; `out` is dense. PER_ROW: one index for a row."""
    r, c, live = _tile(rows, cols, BLOCK)
    at = index + _row_offset(r, n1, n2, i0, i1, i2, RANK)
    if PER_ROW:
        v, good = _checked(
            tl.load(at, mask=r < rows, other=0), r < rows, lower, limit, error, op, info
        )
    else:
        v, good = _checked(
            tl.load(at + c * i3, mask=live, other=0), live, lower, limit, error, op, info
        )
    source = x + _row_offset(r, n1, n2, x0, x1, x2, RANK) + v.to(x0.dtype) * step + c * x3
    value = tl.load(source, mask=live & good, other=0)
    tl.store(out + r * cols + c, value, mask=live)


@triton.jit
def put_elements(
    x, src, index, error, op, info, rows, cols, limit, lower, step, n1, n2, x0, x1, x2, x3, i0, i1, i2, i3, s0, s1, s2, s3,
    BLOCK: tl.constexpr, RANK: tl.constexpr, PER_ROW: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """x[place without the indexed dimension + index[place] * step] = src[place]; atomically += it (HOW "add") or the greater of both ("max")."""
    r, c, live = _tile(rows, cols, BLOCK)
    at = index + _row_offset(r, n1, n2, i0, i1, i2, RANK)
    if PER_ROW:
        v, good = _checked(
            tl.load(at, mask=r < rows, other=0), r < rows, lower, limit, error, op, info
        )
    else:
        v, good = _checked(
            tl.load(at + c * i3, mask=live, other=0), live, lower, limit, error, op, info
        )
    value = tl.load(src + _row_offset(r, n1, n2, s0, s1, s2, RANK) + c * s3, mask=live, other=0)
    target = x + _row_offset(r, n1, n2, x0, x1, x2, RANK) + v.to(x0.dtype) * step + c * x3
    if HOW == "add":
        tl.atomic_add(target, value, mask=live & good, sem="relaxed")
    elif HOW == "max":
        tl.atomic_max(target, value, mask=live & good, sem="relaxed")
    else:
        tl.store(target, value, mask=live & good)


@triton.jit
def index_offsets(
    table, index, error, op, info, rows, cols, limit, step, n1, n2, i0, i1, i2, i3,
    BLOCK: tl.constexpr, RANK: tl.constexpr, FIRST: tl.constexpr,
):  # fmt: skip
    """table[place] = (FIRST), or +=, index[place] * step, where indices count from the end if negative; INVALID once one is out of range."""
    r, c, live = _tile(rows, cols, BLOCK)
    given = tl.load(index + _row_offset(r, n1, n2, i0, i1, i2, RANK) + c * i3, mask=live, other=0)
    v, good = _checked(given, live, -limit, limit, error, op, info)
    to = table + r * cols + c
    offset = v * step
    if not FIRST:
        before = tl.load(to, mask=live, other=0)
        good = good & (before >= 0)
        offset += before
    tl.store(to, tl.where(good, offset, INVALID), mask=live)


@triton.jit
def _directed_key(x, SMALLEST: tl.constexpr):
    """An integer that is the greater, the more extreme x is."""
    key = ordered_key(x)
    if SMALLEST and x.dtype.is_floating():  # NaN is above all in any case
        TOP: tl.constexpr = (1 << (key.dtype.primitive_bitwidth - 1)) - 1
        key = tl.where(key == (1 << (x.dtype.primitive_bitwidth - 1)) - 1, TOP, ~key)
    elif SMALLEST:
        key = ~key
    return key


@triton.jit
def extreme_keys(keys, x, total, SMALLEST: tl.constexpr, BLOCK: tl.constexpr):
    """The elements as integers of 32 or 64 bits that are the greater, the more extreme they are."""
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + e, mask=e < total, other=0)
    tl.store(keys + e, _directed_key(value, SMALLEST), mask=e < total)


@triton.jit
def keyed_elements(out, keys, x, total, SMALLEST: tl.constexpr, BLOCK: tl.constexpr):
    """The elements that the keys stand for; those of `x`, to the bit, whose key is as it was."""
    e = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    own = tl.load(x + e, mask=e < total, other=0)
    key = tl.load(keys + e, mask=e < total, other=0)
    kept = key == _directed_key(own, SMALLEST)
    BITS: tl.constexpr = own.dtype.primitive_bitwidth
    NAN: tl.constexpr = (1 << (BITS - 1)) - 1
    if own.dtype.is_floating():
        if SMALLEST:
            key = tl.where(key == (1 << (key.dtype.primitive_bitwidth - 1)) - 1, NAN, ~key)
        key = key ^ ((key >> (BITS - 1)) & NAN)
        INTEGER: tl.constexpr = tl.int64 if BITS == 64 else tl.int32 if BITS == 32 else tl.int16
        value = key.to(INTEGER).to(own.dtype, bitcast=True)
    else:
        if SMALLEST:
            key = ~key
        if own.dtype.is_int_unsigned():
            key = key - -(1 << (BITS - 1))
        value = key.to(own.dtype)
    tl.store(out + e, tl.where(kept, own, value), mask=e < total)


_SIZES = ["int32", "int64", "int16", "int8"]
_ELEMENTS = [*_SIZES, "float32", "bfloat16", "float64", "float16"]
_OFFSETS = ["int32", "int64"]
_PLACES = {"op": "i64", "info": "i64", "rows": "I", "cols": "I", "limit": "i64"}
_N = {"n1": "I", "n2": "I"}
_X = {"x0": "I", "x1": "I", "x2": "I", "x3": "I"}
_I = {"i0": "I", "i1": "I", "i2": "I", "i3": "I"}
_S = {"s0": "I", "s1": "I", "s2": "I", "s3": "I"}
_GATHER = {
    "out": "*T",
    "x": "*T",
    "index": "*i64",
    "error": "*i64",
    **_PLACES,
    "lower": "i64",
    "step": "I",
    **_N,
    **_X,
    **_I,
}
_PUT = {
    "x": "*T",
    "src": "*T",
    "index": "*i64",
    "error": "*i64",
    **_PLACES,
    "lower": "i64",
    "step": "I",
    **_N,
    **_X,
    **_I,
    **_S,
}
_TABLE = {"table": "*i64", "index": "*i64", "error": "*i64", **_PLACES, "step": "i64", **_N, **_I}
_WALK: dict[str, list[int]] = {"BLOCK": [128, 1024, 8], "RANK": [2, 4], "PER_ROW": [True, False]}


def _is_usual(variant: Variant) -> bool:
    """Integers of all sizes are moved; floats, and integers of full size, are added; maxima are those of keys."""
    if variant["HOW"] == "add":
        return variant["T"] in ("float32", "bfloat16", "int64")
    return variant["T"] in _SIZES and variant["RANK"] == 2 and variant["HOW"] == "store"


KERNELS = [
    Kernel(
        gather_elements,
        signature=_GATHER,
        types={"T": _SIZES, "I": _OFFSETS},
        constants=_WALK,
        default={"T": ["int32", "int64", "int16"], "I": ["int32"]},
        wheel=lambda v: v["T"] != "int16" or v["RANK"] == 2,
    ),
    Kernel(
        put_elements,
        signature=_PUT,
        types={"T": _ELEMENTS, "I": _OFFSETS},
        constants={**_WALK, "HOW": ["store", "add", "max"]},
        default={"T": ["int32", "int64", "float32", "bfloat16"]},
        wheel=_is_usual,
    ),
    Kernel(
        index_offsets,
        signature=_TABLE,
        types={"I": _OFFSETS},
        constants={"BLOCK": [128, 1024, 8], "RANK": [2, 4], "FIRST": [True, False]},
    ),
    Kernel(
        extreme_keys,
        signature={"keys": "*K", "x": "*T", "total": "i64"},
        types={"T": REAL, "K": _OFFSETS},
        constants={"SMALLEST": [False, True], "BLOCK": [1024]},
        default={"T": ["float32"], "K": ["int32"]},
    ),
    Kernel(
        keyed_elements,
        signature={"out": "*T", "keys": "*K", "x": "*T", "total": "i64"},
        types={"T": REAL, "K": _OFFSETS},
        constants={"SMALLEST": [False, True], "BLOCK": [1024]},
        default={"T": ["float32"], "K": ["int32"]},
    ),
]
