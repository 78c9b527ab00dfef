"""Copies, conversions and fills of strided tensors. Elements are moved as integers of their size; complex numbers as pairs."""

import triton
import triton.language as tl

from argand_aten_cuda.conversion import convert
from argand_aten_cuda.kernel import REAL, Kernel, Variant


@triton.jit
def _move(dst, src, value, dst_at, src_at, inside, FILL: tl.constexpr, TO_BOOL: tl.constexpr):
    """dst[dst_at] = src[src_at], or `value` where FILL. TO_BOOL 1: whether it is not 0; 2: or what is there."""
    if FILL:
        result = tl.zeros(dst_at.shape, dst.dtype.element_ty) + value.to(dst.dtype.element_ty)
    else:
        result = convert(tl.load(src + src_at, mask=inside), dst.dtype.element_ty, TO_BOOL > 0)
        if TO_BOOL == 2:
            result = result | tl.load(dst + dst_at, mask=inside)
    tl.store(dst + dst_at, result, mask=inside)


@triton.jit
def copy_flat(
    dst, src, value, n, BLOCK: tl.constexpr, ALIGNED: tl.constexpr, FILL: tl.constexpr, TO_BOOL: tl.constexpr
):  # fmt: skip
    """n elements, both sides dense; ALIGNED: to 16 bytes."""
    start = tl.program_id(0).to(tl.int64) * BLOCK
    lane = tl.arange(0, BLOCK)
    if start + BLOCK <= n:  # without a mask the accesses are wide, whatever n
        _move(dst + start, src + start, value, lane, lane, None, FILL, TO_BOOL)
    else:
        _move(dst + start, src + start, value, lane, lane, lane < n - start, FILL, TO_BOOL)


@triton.jit
def copy_tile(
    dst, src, value, n_x, n_y, dst_y, src_x, src_y,
    n_2, dst_2, src_2, n_3, dst_3, src_3, dst_4, src_4, tiles_x, tiles_y,
    BX: tl.constexpr, BY: tl.constexpr, UNIT: tl.constexpr, ALIGNED: tl.constexpr, WIDE: tl.constexpr,
    FILL: tl.constexpr, TO_BOOL: tl.constexpr,
):  # fmt: skip
    """A plane x, y in tiles, for each index of three further dimensions; strides in elements.

    UNIT says which strides are 1: 1 dst_x and src_x, 2 dst_x and src_y (a transpose). ALIGNED: pointers, the other strides and n_x
    (for a transpose n_y too) are multiples of 16 bytes. WIDE: offsets within a tile need 64 bits.
    """
    tile = tl.program_id(0)
    rest = tile // tiles_x
    first_x = (tile % tiles_x) * BX
    first_y = (rest % tiles_y) * BY
    outer = rest // tiles_y
    i_2 = (outer % n_2).to(tl.int64)
    outer = outer // n_2
    i_3 = (outer % n_3).to(tl.int64)
    i_4 = (outer // n_3).to(tl.int64)
    TO: tl.constexpr = 16 // (dst.dtype.element_ty.primitive_bitwidth // 8)
    FROM: tl.constexpr = 16 // (src.dtype.element_ty.primitive_bitwidth // 8)
    if UNIT == 1:
        src_x = 1
    else:
        src_y = 1
    dst_base = first_x + dst_y * first_y + dst_2 * i_2 + dst_3 * i_3 + dst_4 * i_4
    src_base = src_x * first_x + src_y * first_y + src_2 * i_2 + src_3 * i_3 + src_4 * i_4
    if not WIDE:
        dst_y = dst_y.to(tl.int32)
        if UNIT == 1:
            src_y = src_y.to(tl.int32)
        else:
            src_x = src_x.to(tl.int32)
    if ALIGNED:
        dst_base = tl.multiple_of(dst_base, TO)
        src_base = tl.multiple_of(src_base, FROM)
        dst_y = tl.multiple_of(dst_y, TO)
        if UNIT == 1:
            src_y = tl.multiple_of(src_y, FROM)
        else:
            src_x = tl.multiple_of(src_x, FROM)
    x = tl.arange(0, BX)[None, :]
    y = tl.arange(0, BY)[:, None]
    _move(
        dst + dst_base, src + src_base, value, y * dst_y + x, y * src_y + x * src_x,
        (x < n_x - first_x) & (y < n_y - first_y), FILL, TO_BOOL,
    )  # fmt: skip


@triton.jit
def _outward(at, dst_at, src_at, n, dst_stride, src_stride):
    """Takes the index along a dimension of size n off `at`."""
    rest = at // n
    i = at - rest * n
    return rest, dst_at + i * dst_stride, src_at + i * src_stride


@triton.jit
def copy_strided(
    dst, src, value, n, n_0, n_1, n_2, n_3, n_4, dst_0, dst_1, dst_2, dst_3, dst_4, dst_outer,
    src_0, src_1, src_2, src_3, src_4, src_outer,
    BLOCK: tl.constexpr, INNER: tl.constexpr, WIDE: tl.constexpr, FILL: tl.constexpr, TO_BOOL: tl.constexpr,
):  # fmt: skip
    """n elements: INNER (0 to 5) dimensions of the given sizes, the innermost first, and an outer one. WIDE: 64-bit offsets."""
    INDEX: tl.constexpr = tl.int64 if WIDE else tl.int32
    at = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK).to(INDEX)
    inside = at < n
    dst_at = tl.zeros([BLOCK], INDEX)
    src_at = tl.zeros([BLOCK], INDEX)
    if INNER > 0:
        at, dst_at, src_at = _outward(
            at, dst_at, src_at, n_0.to(INDEX), dst_0.to(INDEX), src_0.to(INDEX)
        )
    if INNER > 1:
        at, dst_at, src_at = _outward(
            at, dst_at, src_at, n_1.to(INDEX), dst_1.to(INDEX), src_1.to(INDEX)
        )
    if INNER > 2:
        at, dst_at, src_at = _outward(
            at, dst_at, src_at, n_2.to(INDEX), dst_2.to(INDEX), src_2.to(INDEX)
        )
    if INNER > 3:
        at, dst_at, src_at = _outward(
            at, dst_at, src_at, n_3.to(INDEX), dst_3.to(INDEX), src_3.to(INDEX)
        )
    if INNER > 4:
        at, dst_at, src_at = _outward(
            at, dst_at, src_at, n_4.to(INDEX), dst_4.to(INDEX), src_4.to(INDEX)
        )
    dst_at += at * dst_outer.to(INDEX)
    src_at += at * src_outer.to(INDEX)
    _move(dst, src, value, dst_at, src_at, inside, FILL, TO_BOOL)


_MOVED = ("uint8", "int16", "int32", "int64")  # what only moves has one of these on both sides
_STORED = (*REAL, "float8_e4m3fn", "float8_e5m2")
_TYPES = {"T": _STORED, "S": _STORED}
_DEFAULT = {"T": _STORED, "S": _STORED}
_COMMON = (
    ("float32", "bfloat16"),
    ("bfloat16", "float32"),
)  # conversions that are compiled into the wheel, to and from
_COMMON_FLAT = (
    *_COMMON,
    ("float32", "int64"),
    ("int64", "float32"),
    ("float32", "uint8"),
    ("int64", "uint8"),
    ("int64", "int32"),
    ("int64", "bfloat16"),
    ("bfloat16", "int64"),
    ("float16", "bfloat16"),
    ("float64", "bfloat16"),
    ("float16", "float32"),
    ("float32", "float16"),
    ("float64", "float32"),
    ("float32", "float64"),
)


def _moves(v: Variant) -> bool:
    return v["T"] == v["S"] and v["T"] in _MOVED and v["TO_BOOL"] == 0


def _flat_in_wheel(v: Variant) -> bool:
    if v["TO_BOOL"]:
        return bool(
            v["T"] == "uint8" and v["S"] in ("float32", "int64") and v["ALIGNED"] and not v["FILL"]
        )
    return _moves(v) or ((v["T"], v["S"]) in _COMMON_FLAT and v["ALIGNED"] and not v["FILL"])


_PLANES = {
    1: ((1024, 4), (128, 32), (16, 256)),
    2: ((64, 64), (16, 256), (256, 16)),
}  # UNIT -> BX, BY


def _tile_in_wheel(v: Variant) -> bool:
    if (v["BX"], v["BY"]) not in _PLANES[v["UNIT"]]:
        return False
    square = v["BX"] == v["BY"]
    common = (v["T"], v["S"]) in _COMMON and (
        v["UNIT"] == 1 and v["BX"] == 1024 or v["UNIT"] == 2 and square
    )
    return common or (
        _moves(v)
        and (square or v["T"] == "int32" or (v["T"] in ("int16", "int64") and v["UNIT"] == 1))
    )


def _tile_divisible(v: Variant) -> tuple[str, ...]:
    if not v["ALIGNED"]:
        return ()
    return ("dst", "src", "n_x", "n_y") if v["UNIT"] == 2 else ("dst", "src", "n_x")


_SIDES = {"dst": "*T", "src": "*S", "value": "i64"}
_TILE_COUNTS = ("n_x", "n_y", "n_2", "n_3", "tiles_x", "tiles_y")

KERNELS = [
    Kernel(
        copy_flat,
        signature={**_SIDES, "n": "i64"},
        types=_TYPES,
        constants={
            "BLOCK": [2048],
            "ALIGNED": [False, True],
            "FILL": [False, True],
            "TO_BOOL": [0, 1],
        },
        default=_DEFAULT,
        divisible=lambda v: ("dst", "src") if v["ALIGNED"] else (),
        wheel=_flat_in_wheel,
    ),
    Kernel(
        copy_tile,
        signature={
            **_SIDES,
            **{
                n: "i32" if n in _TILE_COUNTS else "i64"
                for n in copy_tile.arg_names[3:]
                if not n.isupper()
            },
        },
        types=_TYPES,
        constants={
            "BX": [16, 64, 128, 256, 1024],
            "BY": [4, 16, 32, 64, 256],
            "UNIT": [1, 2],
            "ALIGNED": [False, True],
            "WIDE": [False],
            "FILL": [False],
            "TO_BOOL": [0],
        },
        default=_DEFAULT,
        divisible=_tile_divisible,
        wheel=_tile_in_wheel,
    ),
    Kernel(
        copy_strided,
        signature={**_SIDES, **{n: "i64" for n in copy_strided.arg_names[3:] if not n.isupper()}},
        types=_TYPES,
        constants={
            "BLOCK": [1024],
            "INNER": [0, 1, 2, 3],
            "WIDE": [False],
            "FILL": [False, True],
            "TO_BOOL": [0],
        },
        default=_DEFAULT,
        wheel=lambda v: (
            _moves(v) and v["T"] in ("int16", "int32", "int64") and v["INNER"] <= 3 - 3 * v["FILL"]
        ),
    ),
]
