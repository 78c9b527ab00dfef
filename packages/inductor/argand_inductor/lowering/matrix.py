"""Matrix products of 16-bit floats on devices whose rows are no multiple of 16 bytes: they are given padded operands, since the
libraries' fast kernels want aligned rows. Added columns hold zeros, so that results are the same sums."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argand_inductor.loop_ir import HALF, Access, Guard, contiguous_strides
from argand_inductor.lowering.composite import lowers_rows
from argand_inductor.lowering.creation import elementwise
from argand_inductor.lowering.elements import convert
from argand_inductor.lowering.pointwise import Reads
from argand_inductor.lowering.tensors import TensorRef, geometry

if TYPE_CHECKING:
    from argand_inductor.lowering.graph import Lowering

_UNIT = 8  # elements of 16 bytes
# Multiplications from which on a copy of the operands costs little.
_WORTH = 1 << 32


class _Like:
    """The geometry of a row-major tensor, as fakes have it."""

    def __init__(self, sizes: tuple[int, ...], dtype: str) -> None:
        self.shape, self.dtype = sizes, dtype

    def stride(self) -> tuple[int, ...]:
        return tuple(int(str(s)) for s in contiguous_strides(self.shape))

    def storage_offset(self) -> int:
        return 0


def _up(n: int) -> int:
    return -(-n // _UNIT) * _UNIT


def _padded(ctx: Lowering, ref: TensorRef, sizes: tuple[int, int]) -> TensorRef:
    """A matrix with zeros behind one of its dimensions, in the order of memory that it has."""
    rows, columns = (int(str(s)) for s in ref.sizes)
    if (rows, columns) == sizes:
        return ref
    if ref.strides[0] == 1 and ref.strides[1] != 1:
        turned = TensorRef(ref.buffer, ref.dtype, ref.sizes[::-1], ref.strides[::-1], ref.offset)
        made = _padded(ctx, turned, sizes[::-1])
        return TensorRef(made.buffer, made.dtype, sizes, made.strides[::-1], made.offset)
    key = (ref, sizes)
    if key not in ctx.padded:
        along, limit = ((1, 0), rows) if rows != sizes[0] else ((0, 1), columns)
        reads = Reads()
        x = reads.load(
            Access(ref.buffer, ref.strides, ref.offset, Guard(along, 0, limit)), ref.dtype
        )
        ctx.padded[key] = elementwise(
            ctx, "pad", _Like(sizes, ref.dtype), reads, convert(x, ref.dtype)
        )
    return ctx.padded[key]


@lowers_rows("mm")
def lower_mm(ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any) -> Any:
    return _product(ctx, values["self"], values["mat2"], result)


@lowers_rows("linear")
def lower_linear(ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any) -> Any:
    x, weight = values["input"], values["weight"]
    if values["bias"] is not None or len(weight.sizes) != 2 or len(x.sizes) < 2:
        return None
    flat = _flat(x)
    turned = TensorRef(
        weight.buffer, weight.dtype, weight.sizes[::-1], weight.strides[::-1], weight.offset
    )
    return None if flat is None else _product(ctx, flat, turned, result)


def _flat(x: TensorRef) -> TensorRef | None:
    """A row-major tensor as a matrix of its last dimension."""
    if not all(isinstance(s, int) for s in x.sizes) or x.strides != contiguous_strides(x.sizes):
        return None
    n = int(str(x.sizes[-1]))
    rows = 1
    for s in x.sizes[:-1]:
        rows *= int(str(s))
    return TensorRef(x.buffer, x.dtype, (rows, n), (n, 1), x.offset)


def _product(ctx: Lowering, a: TensorRef, b: TensorRef, result: Any) -> TensorRef | None:
    """The product of padded matrices, or None where there is nothing to pad."""
    if a.dtype not in HALF or b.dtype != a.dtype:
        return None
    if not all(isinstance(s, int) for s in (*a.sizes, *b.sizes)):
        return None
    m, k, n = int(str(a.sizes[0])), int(str(a.sizes[1])), int(str(b.sizes[1]))
    wide = _up(m), _up(k), _up(n)
    changed = sum(x != y for x, y in zip((m, k, n), wide, strict=True))
    sizes, strides, _ = geometry(result)
    if changed != 1 or m * k * n < _WORTH or strides != contiguous_strides(sizes):
        return None
    left, right = _padded(ctx, a, wide[:2]), _padded(ctx, b, wide[1:])
    made = ctx.call_operator("mm", (left, right), a.dtype, (wide[0], wide[2]))
    if wide[2] == n:  # whole rows, the first ones of what was made
        return TensorRef(made.buffer, made.dtype, sizes, strides)
    reads = Reads()
    lead = contiguous_strides(sizes)
    along = tuple([int(str(s)) // n * wide[2] for s in lead[:-1]] + [1])
    x = reads.load(Access(made.buffer, along), made.dtype)
    return elementwise(ctx, "pad", result, reads, convert(x, made.dtype))
