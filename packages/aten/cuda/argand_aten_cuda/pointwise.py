"""What generated pointwise kernels share: contiguous blocks, strided tiles, operands that are tensors or numbers.

An operand is a pointer, a count and a number: where the count is 0 nothing is read and every element is the number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton
import triton.language as tl

from argand_aten_cuda.kernel import Kernel
from argand_aten_cuda.usual import is_usual

BLOCK = 1024
TILES = ((1, 1024), (32, 32))  # rows x columns of a strided tile
TURNED_TILE = (32, 64)  # where an operand is a transpose


@triton.jit
def computed(x):
    """A loaded value in the computation's dtype."""
    if x.dtype == tl.float16 or x.dtype == tl.bfloat16:
        return x.to(tl.float32)
    else:
        return x


@triton.jit
def scalar(value, like):
    """A number argument in the computation's dtype."""
    if like.dtype == tl.int1:
        return value != 0
    else:
        return value.to(like.dtype)


@triton.jit
def block(n, BLOCK: tl.constexpr):
    """This program's offsets, and whether all of them are below n."""
    first = tl.program_id(0).to(n.dtype) * BLOCK
    return first + tl.arange(0, BLOCK), first + BLOCK <= n


@triton.jit
def operand(x, count, value, EXACT: tl.constexpr):
    """A loaded operand in the computation's dtype. EXACT: a number is not rounded to a 16-bit dtype."""
    if EXACT and (x.dtype == tl.float16 or x.dtype == tl.bfloat16):
        return tl.where(count > 0, computed(x), value)
    else:
        return computed(x)


@triton.jit
def load(pointer, offsets, count, value, full, EXACT: tl.constexpr = False):
    other = value.to(pointer.dtype.element_ty)
    if full:  # no mask but whether there is a tensor: vector loads, whatever n is
        x = tl.load(pointer + offsets, mask=count > 0, other=other)
    else:
        x = tl.load(pointer + offsets, mask=offsets < count, other=other)
    return operand(x, count, value, EXACT)


@triton.jit
def stored(x, dtype: tl.constexpr):
    """x as it is stored in elements of `dtype`."""
    if dtype == tl.int1 and x.dtype != tl.int1:
        return x != 0
    else:
        return x.to(dtype)


@triton.jit
def store(out, offsets, x, n, full):
    result = stored(x, out.dtype.element_ty)
    if full:
        tl.store(out + offsets, result)
    else:
        tl.store(out + offsets, result, mask=offsets < n)


# Complex elements: a pointer to their parts, which lie side by side; as a number the parts are `re` and `im`.
@triton.jit
def load_pair(pointer, offsets, inside, count, re, im):
    both = tl.expand_dims(offsets, -1) * 2 + tl.arange(0, 2)
    given = tl.expand_dims(inside & (count > 0), -1)
    x, y = tl.split(tl.load(pointer + both, mask=given, other=0))
    return tl.where(count > 0, x, re.to(x.dtype)), tl.where(count > 0, y, im.to(y.dtype))


@triton.jit
def store_pair(out, offsets, inside, x):
    both = tl.expand_dims(offsets, -1) * 2 + tl.arange(0, 2)
    tl.store(out + both, tl.join(x[0], x[1]), mask=tl.expand_dims(inside, -1))


@triton.jit
def tile(columns, rows, size1, size2, Y: tl.constexpr, X: tl.constexpr, TURNED: tl.constexpr):
    """This program's indices (column, and of the row's dimensions the inner to the outer one), and which are inside.

    TURNED: some operand is a transpose, and a tile has rows of one plane only.
    """
    across = tl.cdiv(columns, X)
    program = tl.program_id(0).to(columns.dtype)
    if Y == 1:
        x = (program % across) * X + tl.arange(0, X)
        y = program // across
        inside = x < columns
    else:
        x = ((program % across) * X + tl.arange(0, X))[None, :]
        row = program // across
        if TURNED:
            down = tl.cdiv(size1, Y)
            plane = row // down
            y = ((row % down) * Y + tl.arange(0, Y))[:, None]
            inside = (x < columns) & (y < size1)
        else:
            y = (row * Y + tl.arange(0, Y))[:, None]
            inside = (x < columns) & (y < rows)
    if TURNED:
        place = (x, y, plane % size2, plane // size2)
    else:
        outer = y // size1
        place = (x, y % size1, outer % size2, outer // size2)
    return place, inside


@triton.jit
def offsets_at(place, s0, s1, s2, s3, TURNED: tl.constexpr, UNIT: tl.constexpr):
    """Offsets of a tile's elements. In TURNED tiles the stride along dimension UNIT is 1."""
    if TURNED:
        offsets = place[2] * s2 + place[3] * s3
        if UNIT == 1:
            offsets += place[1] + place[0] * s0
        else:
            offsets += place[0] + place[1] * s1
    else:
        offsets = place[0] * s0 + place[1] * s1 + place[2] * s2 + place[3] * s3
    return offsets


@triton.jit
def load_at(pointer, offsets, inside, count, value, EXACT: tl.constexpr = False):
    x = tl.load(
        pointer + offsets, mask=inside & (count > 0), other=value.to(pointer.dtype.element_ty)
    )
    return operand(x, count, value, EXACT)


@triton.jit
def store_at(out, offsets, inside, x):
    tl.store(out + offsets, stored(x, out.dtype.element_ty), mask=inside)


def kernels(
    contiguous: Any,
    strided: Any,
    loaded: Sequence[str],
    scalars: int,
    dtypes: Sequence[str],
    result: str,
) -> list[Kernel]:
    """The two kernels of one expression.

    Args:
        contiguous: its kernel for contiguous operands whose addresses are multiples of 16.
        strided: its kernel for any strides, up to four dimensions.
        loaded: the operands' dtypes, "T" or "bool".
        scalars: how many number arguments it has.
        dtypes: that T may be, real ones or complex ones.
        result: "T" or "bool".
    """
    operands: dict[str, str] = {}
    is_complex = dtypes[0] in ("complex64", "complex128")
    for i, dtype in enumerate(loaded):
        operands |= {f"p{i}": f"*{dtype}", f"n{i}": "I", f"v{i}": f"={dtype}"}
        if is_complex and dtype == "T":
            operands[f"w{i}"] = "=T"
    numbers = {f"s{i}": "=T" for i in range(scalars)}
    types = {"T": tuple(dtypes), "I": ("i32", "i64")}
    usual = is_usual(contiguous.__name__) and not is_complex
    held = [d for d in ("float32", "bfloat16", "int64") if d in dtypes] or dtypes[:1]
    pointers = ("out", *(f"p{i}" for i in range(len(loaded))))
    flat = Kernel(
        contiguous,
        {"out": f"*{result}", **operands, **numbers, "n": "I"},
        types,
        {"BLOCK": (BLOCK,)},
        {"T": held, "I": ("i32",)},
        divisible=pointers,
        wheel=lambda v: usual,
    )
    sizes = dict.fromkeys(("columns", "rows", "size1", "size2"), "I")
    strides = {
        f"{k}{d}": "I" for k in ("o", *(f"i{i}_" for i in range(len(loaded)))) for d in range(4)
    }
    tiled = Kernel(
        strided,
        {"out": f"*{result}", **operands, **numbers, **sizes, **strides},
        types,
        {
            "Y": sorted({y for y, _ in (*TILES, TURNED_TILE)}),
            "X": sorted({x for _, x in (*TILES, TURNED_TILE)}),
            "TURNED": (0, 1, 2) if len(loaded) == 2 else (0,),
        },
        {"T": held[:2], "I": ("i32",)},
        wheel=lambda v: (
            usual
            and not v["TURNED"]
            and (v["Y"], v["X"]) in (TILES if len(loaded) > 1 else TILES[:1])
        ),
    )
    return [flat, tiled]
