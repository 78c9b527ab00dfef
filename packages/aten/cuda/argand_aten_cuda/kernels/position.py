"""What depends on an element's position: ranges, triangles, joined and padded tensors."""

import triton
import triton.language as tl

from argand_aten_cuda.conversion import convert
from argand_aten_cuda.kernel import REAL, Kernel


@triton.jit
def integer_range(out, n, first, step, BLOCK: tl.constexpr, TO_BOOL: tl.constexpr):
    """first + i * step in 64 bits."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, convert(first + i * step, out.dtype.element_ty, TO_BOOL), mask=i < n)


@triton.jit
def float_range(out, n, first, last, step, middle, BLOCK: tl.constexpr, TO_BOOL: tl.constexpr):
    """first + i * step in float64 for i < middle; from there on last - (n - 1 - i) * step."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.where(
        i < middle, first + i.to(tl.float64) * step, last - (n - 1 - i).to(tl.float64) * step
    )
    tl.store(out + i, convert(value, out.dtype.element_ty, TO_BOOL), mask=i < n)


@triton.jit
def triangle(
    x, out, height, columns, diagonal, tiles_x, tiles_y,
    BX: tl.constexpr, BY: tl.constexpr, LOWER: tl.constexpr, PARTS: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """Dense matrices of `height` rows: elements with column - row <= diagonal (LOWER) or >= it, else zeros.

    `columns` counts parts of elements, PARTS an element. ALIGNED: pointers and columns are multiples of 16 bytes.
    """
    tile = tl.program_id(0)
    rest = tile // tiles_x
    first_column = (tile % tiles_x) * BX
    first_row = (rest % tiles_y) * BY
    first = ((rest // tiles_y).to(tl.int64) * height + first_row) * columns + first_column
    VECTOR: tl.constexpr = 16 // (x.dtype.element_ty.primitive_bitwidth // 8)
    if ALIGNED:
        first = tl.multiple_of(first, VECTOR)
    column = tl.arange(0, BX)[None, :]
    row = tl.arange(0, BY)[:, None]
    at = first + row.to(tl.int64) * columns + column
    inside = (column < columns - first_column) & (row < height - first_row)
    distance = (first_column + column) // PARTS - (first_row + row)
    if LOWER:
        kept = distance <= diagonal
        any_kept = first_column // PARTS - (first_row + BY - 1) <= diagonal
    else:
        kept = distance >= diagonal
        any_kept = (first_column + BX - 1) // PARTS - first_row >= diagonal
    value = tl.zeros([BY, BX], x.dtype.element_ty)
    if any_kept:
        value = tl.where(kept, tl.load(x + at, mask=inside, other=0), value)
    tl.store(out + at, value, mask=inside)


@triton.jit
def _before_row(k, columns):
    """1 + 2 + ... + k, of numbers up to `columns`; 0 for negative k."""
    k = tl.maximum(k, 0)
    full = tl.minimum(k, columns)
    return full * (full + 1) // 2 + (k - full) * columns


@triton.jit
def triangle_indices(
    out, total, height, columns, diagonal, tiles_x,
    BX: tl.constexpr, BY: tl.constexpr, LOWER: tl.constexpr,
):  # fmt: skip
    """Rows, then columns (out[2, total]), of a matrix' elements with column - row <= diagonal (LOWER) or >= it, in row-major order."""
    tile = tl.program_id(0)
    row = ((tile // tiles_x) * BY + tl.arange(0, BY)).to(tl.int64)[:, None]
    column = ((tile % tiles_x) * BX + tl.arange(0, BX)).to(tl.int64)[None, :]
    if LOWER:
        at = _before_row(row + diagonal, columns) - _before_row(diagonal, columns) + column
        kept = column - row <= diagonal
    else:
        skipped = _before_row(row + diagonal - 1, columns) - _before_row(diagonal - 1, columns)
        at = row * columns - skipped + column - tl.maximum(row + diagonal, 0)
        kept = column - row >= diagonal
    kept = kept & (row < height) & (column < columns)
    tl.store(out + at, row + column * 0, mask=kept)
    tl.store(out + total + at, column + row * 0, mask=kept)


@triton.jit
def _pick4(j, a, b, c, d):
    return tl.where(j < 2, tl.where(j == 0, a, b), tl.where(j == 2, c, d))


@triton.jit
def _pick(j, a, b, c, d, e, f, g, h, i, k, l, m, n, o, p, q, MULTIPLE: tl.constexpr):  # noqa: E741
    """The j-th value; all are multiples of MULTIPLE."""
    low = tl.where(j < 4, _pick4(j, a, b, c, d), _pick4(j - 4, e, f, g, h))
    high = tl.where(j < 12, _pick4(j - 8, i, k, l, m), _pick4(j - 12, n, o, p, q))
    return tl.multiple_of(tl.where(j < 8, low, high), MULTIPLE)


@triton.jit
def join(
    out, in_0, in_1, in_2, in_3, in_4, in_5, in_6, in_7,
    in_8, in_9, in_10, in_11, in_12, in_13, in_14, in_15,
    n_0, n_1, n_2, n_3, n_4, n_5, n_6, n_7,
    n_8, n_9, n_10, n_11, n_12, n_13, n_14, n_15, first, rows, row, tiles_x,
    BX: tl.constexpr, BY: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """Up to 16 dense inputs of n_j elements a row, one behind the other from element `first` of out's rows of `row` elements on.

    program_id(1) is the input. ALIGNED: all pointers and numbers of elements are multiples of 16 bytes.
    """
    VECTOR: tl.constexpr = 16 // (out.dtype.element_ty.primitive_bitwidth // 8) if ALIGNED else 1
    j = tl.program_id(1)
    n = _pick(
        j, n_0, n_1, n_2, n_3, n_4, n_5, n_6, n_7, n_8, n_9, n_10, n_11, n_12, n_13, n_14, n_15, VECTOR
    )  # fmt: skip
    start = first
    start += (
        tl.where(j > 0, n_0, 0) + tl.where(j > 1, n_1, 0) + tl.where(j > 2, n_2, 0) + tl.where(j > 3, n_3, 0)
    )  # fmt: skip
    start += (
        tl.where(j > 4, n_4, 0) + tl.where(j > 5, n_5, 0) + tl.where(j > 6, n_6, 0) + tl.where(j > 7, n_7, 0)
    )  # fmt: skip
    start += (
        tl.where(j > 8, n_8, 0) + tl.where(j > 9, n_9, 0) + tl.where(j > 10, n_10, 0) + tl.where(j > 11, n_11, 0)
    )  # fmt: skip
    start += tl.where(j > 12, n_12, 0) + tl.where(j > 13, n_13, 0) + tl.where(j > 14, n_14, 0)
    tile = tl.program_id(0)
    first_x = (tile % tiles_x).to(tl.int64) * BX
    first_y = (tile // tiles_x).to(tl.int64) * BY
    if first_x >= n:
        return
    ADDRESS: tl.constexpr = tl.pointer_type(out.dtype.element_ty)
    address = _pick(
        j,
        in_0.to(tl.int64), in_1.to(tl.int64), in_2.to(tl.int64), in_3.to(tl.int64),
        in_4.to(tl.int64), in_5.to(tl.int64), in_6.to(tl.int64), in_7.to(tl.int64),
        in_8.to(tl.int64), in_9.to(tl.int64), in_10.to(tl.int64), in_11.to(tl.int64),
        in_12.to(tl.int64), in_13.to(tl.int64), in_14.to(tl.int64), in_15.to(tl.int64),
        16 if ALIGNED else 1,
    )  # fmt: skip
    source = address.to(ADDRESS) + first_y * n + first_x
    target = out + first_y * row + start + first_x
    if ALIGNED:
        source = tl.multiple_of(source, 16)
        target = tl.multiple_of(target, 16)
    x = tl.arange(0, BX)[None, :]
    y = tl.arange(0, BY)[:, None]
    inside = (x < n - first_x) & (y < rows - first_y)
    below = tl.multiple_of(y * row, [VECTOR, VECTOR])
    value = tl.load(source + y * n + x, mask=inside)
    tl.store(target + below + x, value, mask=inside)


@triton.jit
def _inside(i, n, MIRROR: tl.constexpr):
    """Where place i is taken from along a dimension of n elements: mirrored at its ends, or from the nearer end."""
    if MIRROR:
        return n - 1 - tl.abs(n - 1 - tl.abs(i))
    else:
        return tl.minimum(tl.maximum(i, 0), n - 1)


@triton.jit
def pad_border(
    out, x, total, out_width, out_height, out_depth, width, height, depth, left, top, front,
    MIRROR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Dense volumes of `x` continued beyond their borders, of which they have `left`, `top` and `front` elements before them."""
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = e // out_width
    plane = row // out_height
    volume = plane // out_depth
    at = volume * depth + _inside(plane - volume * out_depth - front, depth, MIRROR)
    at = at * height + _inside(row - plane * out_height - top, height, MIRROR)
    at = at * width + _inside(e - row * out_width - left, width, MIRROR)
    tl.store(out + e, tl.load(x + at, mask=e < total), mask=e < total)


_MOVED = ("uint8", "int16", "int32", "int64")
_INPUTS = range(16)

KERNELS = [
    Kernel(
        integer_range,
        signature={"out": "*T", "n": "i64", "first": "i64", "step": "i64"},
        types={"T": REAL},
        constants={"BLOCK": [1024], "TO_BOOL": [False]},
        default={"T": ["int64", "int32"]},
    ),
    Kernel(
        float_range,
        signature={
            "out": "*T",
            "n": "i64",
            "first": "fp64",
            "last": "fp64",
            "step": "fp64",
            "middle": "i64",
        },
        types={"T": REAL},
        constants={"BLOCK": [1024], "TO_BOOL": [False]},
    ),
    Kernel(
        triangle,
        signature={
            "x": "*T",
            "out": "*T",
            "height": "i32",
            "columns": "i32",
            "diagonal": "i64",
            "tiles_x": "i32",
            "tiles_y": "i32",
        },  # fmt: skip
        types={"T": _MOVED},
        constants={
            "BX": [128],
            "BY": [32],
            "LOWER": [False, True],
            "PARTS": [1],
            "ALIGNED": [False, True],
        },
        default={"T": ["uint8", "int16", "int32"]},
        divisible=lambda v: ("x", "out", "columns") if v["ALIGNED"] else (),
    ),
    Kernel(
        triangle_indices,
        signature={
            "out": "*i64",
            "total": "i64",
            "height": "i64",
            "columns": "i64",
            "diagonal": "i64",
            "tiles_x": "i32",
        },  # fmt: skip
        constants={"BX": [512], "BY": [8], "LOWER": [False, True]},
    ),
    Kernel(
        pad_border,
        signature={
            "out": "*T",
            "x": "*T",
            "total": "i32",
            **dict.fromkeys(
                "out_width out_height out_depth width height depth left top front".split(), "i32"
            ),
        },  # fmt: skip
        types={"T": _MOVED},
        constants={"MIRROR": [False, True], "BLOCK": [1024]},
        default={"T": ["int16", "int32"]},
    ),
    Kernel(
        join,
        signature={
            "out": "*T",
            **{f"in_{j}": "*T" for j in _INPUTS},
            **{f"n_{j}": "i64" for j in _INPUTS},
            "first": "i64",
            "rows": "i64",
            "row": "i64",
            "tiles_x": "i32",
        },
        types={"T": _MOVED},
        constants={"BX": [16, 128, 1024], "BY": [4, 32, 256], "ALIGNED": [False, True]},
        default={"T": ["int16", "int32"]},
        divisible=lambda v: ("out",) if v["ALIGNED"] else (),
        wheel=lambda v: v["BX"] * v["BY"] == 4096,
    ),
]
