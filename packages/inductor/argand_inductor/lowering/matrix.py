"""Matrix products of 16-bit floats on devices whose sizes are no multiples of 16 bytes: they are given padded operands, since
the libraries' fast kernels want such. Added columns hold zeros, so that results are the same sums. What has zeros behind its rows
already (`joint_passes/pad_rows.py`) is read with them, and not copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argand_inductor import sizes as sz
from argand_inductor.loop_ir import HALF, Access, Guard, contiguous_strides
from argand_inductor.lowering.composite import lowers_rows
from argand_inductor.lowering.creation import elementwise
from argand_inductor.lowering.elements import convert
from argand_inductor.lowering.pointwise import Reads
from argand_inductor.lowering.tensors import TensorRef, geometry, padded_row

if TYPE_CHECKING:
    from argand_inductor.lowering.graph import Lowering

UNIT = 8  # elements of 16 bytes
# Multiplications from which on a copy of the operands costs little.
WORTH = 1 << 32


class _Like:
    """The geometry of a row-major tensor, as fakes have it."""

    def __init__(self, sizes: tuple[int, ...], dtype: str) -> None:
        self.shape, self.dtype = sizes, dtype

    def stride(self) -> tuple[int, ...]:
        return tuple(int(str(s)) for s in contiguous_strides(self.shape))

    def storage_offset(self) -> int:
        return 0


def _up(n: int) -> int:
    return -(-n // UNIT) * UNIT


def _padded(ctx: Lowering, ref: TensorRef, sizes: tuple[int, int]) -> TensorRef:
    """A matrix with zeros behind its dimensions, in the order of memory that it has."""
    rows, columns = (int(str(s)) for s in ref.sizes)
    if (rows, columns) == sizes:
        return ref
    if rows != sizes[0] and columns != sizes[1]:
        return _padded(ctx, _padded(ctx, ref, (rows, sizes[1])), sizes)
    if rows == sizes[0] and sizes[1] <= _wide(ctx, ref, 1):
        return TensorRef(ref.buffer, ref.dtype, sizes, ref.strides, ref.offset)
    if _is_turned(ref):
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


def _wide(ctx: Lowering, ref: TensorRef, dim: int) -> int:
    """The size up to which a dimension of a matrix can be read as zeros, without a copy."""
    buffer, other = ctx.graph.buffers[ref.buffer], 1 - dim
    row = buffer.row()
    if row is None or ref.strides[dim] != 1 or ref.sizes[dim] != buffer.columns:
        return int(str(ref.sizes[dim]))
    fits = ref.strides[other] == row and sz.divide(ref.offset, row) is not None
    return row if fits else buffer.columns


def _widened(ctx: Lowering, a: TensorRef, b: TensorRef, row: int) -> tuple[int, int, int]:
    """The m, k, n for which the libraries' kernels are fast: dimensions along which a matrix lies in memory are multiples of 16 bytes.
    The result's rows have `row` elements."""
    m, k, n = int(str(a.sizes[0])), int(str(a.sizes[1])), int(str(b.sizes[1]))
    if _is_turned(a):
        m = _up(_wide(ctx, a, 0))
    if not _is_turned(a) or _is_turned(b):
        k = _up(max(_wide(ctx, a, 1), _wide(ctx, b, 0)))
    return m, k, _up(max(n if _is_turned(b) else _wide(ctx, b, 1), row))


def _is_turned(ref: TensorRef) -> bool:
    return ref.strides[0] == 1 and ref.strides[1] != 1


def _product(ctx: Lowering, a: TensorRef, b: TensorRef, result: Any) -> TensorRef | None:
    """The product of padded matrices, or None where there is nothing to pad."""
    if a.dtype not in HALF or b.dtype != a.dtype:
        return None
    if not all(isinstance(s, int) for s in (*a.sizes, *b.sizes)):
        return None
    m, k, n = int(str(a.sizes[0])), int(str(a.sizes[1])), int(str(b.sizes[1]))
    sizes, strides, _ = geometry(result)
    row = padded_row(sizes, strides)
    if m * k * n < WORTH or (row is None and strides != contiguous_strides(sizes)):
        return None
    wide = _widened(ctx, a, b, row or n)
    if wide == (m, k, n):
        return None
    left, right = _padded(ctx, a, wide[:2]), _padded(ctx, b, wide[1:])
    made = ctx.call_operator("mm", (left, right), a.dtype, (wide[0], wide[2]))
    if row is not None:
        ctx.with_gaps(ctx.graph.buffers[made.buffer], n)
    if wide[2] == (row or n):  # the first rows of what was made
        return TensorRef(made.buffer, made.dtype, sizes, strides)
    reads = Reads()
    lead = contiguous_strides(sizes)
    along = tuple([int(str(s)) // n * wide[2] for s in lead[:-1]] + [1])
    x = reads.load(Access(made.buffer, along), made.dtype)
    return elementwise(ctx, "pad", result, reads, convert(x, made.dtype))
