"""Tensors made from numbers and indices, copies, and parts of matrices: loops that cost nothing once they are fused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argand_inductor import sizes as sz
from argand_inductor.loop_ir import (
    COMPUTE_DTYPES,
    HALF,
    INDEX,
    Access,
    Guard,
    Loop,
    Value,
    compute_dtype,
)
from argand_inductor.lowering.composite import lowers
from argand_inductor.lowering.elements import convert, literal
from argand_inductor.lowering.pointwise import Reads
from argand_inductor.lowering.tensors import (
    TensorRef,
    can_be_made,
    dtype_name,
    geometry,
    is_dense,
)

if TYPE_CHECKING:
    from argand_inductor.lowering.graph import Lowering

# Dtypes of what loops compute; complex elements are the operators' own.
LOOPS = frozenset((*COMPUTE_DTYPES, *HALF))
_FILLS = {
    "full": "fill_value", "full_like": "fill_value", "new_full": "fill_value", "scalar_tensor": "s", "zeros": 0, "zeros_like": 0,
    "new_zeros": 0, "ones": 1, "ones_like": 1, "new_ones": 1,
}  # fmt: skip


def number_value(number: Any, dtype: str) -> Value | None:
    """A number or symbolic integer as an element of a dtype."""
    if isinstance(number, (complex, TensorRef)):
        return None
    if isinstance(number, (bool, int, float)):
        return literal(number, dtype)
    size = sz.of(number)
    return (
        literal(size, dtype)
        if isinstance(size, int)
        else convert(Value("size", (), "int64", size), dtype)
    )


def elementwise(ctx: Lowering, name: str, result: Any, reads: Reads, value: Value) -> TensorRef:
    """A loop over the result."""
    sizes, strides, _ = geometry(result)
    buffer = ctx.new_result(dtype_name(result.dtype), sizes, strides)
    loop = Loop(
        Access(buffer.name, strides), buffer.dtype, sizes, reads.accesses, reads.dtypes, value
    )
    return ctx.emit(loop, name)


def _fill(name: str) -> None:
    @lowers(name)
    def lower(ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any) -> Any:
        dtype = dtype_name(result.dtype)
        source = _FILLS[name]
        if dtype not in LOOPS:
            return None
        value = number_value(values[source] if isinstance(source, str) else source, dtype)
        if value is None or not is_dense(*geometry(result)[:2]):
            return None
        ref = elementwise(ctx, name, result, Reads(), value)
        ctx.constant_values[ref.buffer] = value
        return ref


for _name in _FILLS:
    _fill(_name)


def in_memory_order(ref: TensorRef, strides: tuple[sz.Size, ...], hints: dict[str, int]) -> bool:
    """Whether a copy with the given strides walks through both tensors with their innermost dimension inside."""
    inner = [d for d, s in enumerate(ref.sizes) if s != 1]
    if not inner:
        return True
    d = min(inner, key=lambda k: sz.evaluate(strides[k], hints))
    return ref.strides[d] in (0, 1)


def _copy(name: str) -> None:
    @lowers(name)
    def lower(ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any) -> Any:
        ref, dtype = values["self"], dtype_name(result.dtype)
        sizes, strides, _ = geometry(result)
        if (
            not isinstance(ref, TensorRef)
            or dtype not in LOOPS
            or ref.dtype not in LOOPS
            or not can_be_made(sizes, strides)
        ):
            return None
        if not in_memory_order(ref, strides, ctx.graph.hints):
            return None  # the operator goes through tiles
        reads = Reads()
        x = ctx.constant_values.get(ref.buffer) or reads.load(ref.broadcast(sizes), ref.dtype)
        return elementwise(ctx, name, result, reads, convert(x, dtype))


for _name in ("clone", "_to_copy"):
    _copy(_name)


@lowers("arange.start_step")
def lower_arange(ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any) -> Any:
    start, step, dtype = values["start"], values["step"], dtype_name(result.dtype)
    if (
        isinstance(start, float)
        or isinstance(step, float)
        or isinstance(start, complex)
        or not dtype.startswith("int")
    ):
        return None
    reads = Reads()
    x = reads.load(Access(INDEX, (sz.of(step),), sz.of(start)), "int64")
    ref = elementwise(ctx, "arange", result, reads, convert(x, dtype))
    if dtype == "int64":
        ctx.ranges[ref.buffer] = (sz.of(start), sz.of(step))
    return ref


def _triangle(name: str) -> None:
    @lowers(name)
    def lower(ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any) -> Any:
        ref, dtype = values["self"], dtype_name(result.dtype)
        sizes, strides, _ = geometry(result)
        if dtype not in LOOPS or not is_dense(sizes, strides):
            return None
        reads = Reads()
        x = ctx.constant_values.get(ref.buffer) or reads.load(ref.broadcast(sizes), ref.dtype)
        outer: tuple[sz.Size, ...] = (0,) * (len(sizes) - 2)
        distance = reads.load(Access(INDEX, (*outer, -1, 1)), "int64")  # column - row
        kept = Value(
            "le" if name == "tril" else "ge",
            (distance, literal(values["diagonal"], "int64")),
            "bool",
        )
        zero = literal(0, dtype)
        return elementwise(
            ctx, name, result, reads, Value("where", (kept, x, zero), x.dtype, half=x.half)
        )


for _name in ("tril", "triu"):
    _triangle(_name)


@lowers("native_batch_norm")
def lower_batch_norm(
    ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any
) -> Any:
    """With running statistics: elementwise. While training the operator is called."""
    if values["training"] or values["running_mean"] is None or values["running_var"] is None:
        return None
    out, dtype = result[0], dtype_name(result[0].dtype)
    held = compute_dtype(dtype)
    sizes, strides, _ = geometry(out)
    if dtype not in LOOPS or not is_dense(sizes, strides):
        return None
    reads = Reads()

    def channel(name: str) -> Value | None:
        ref = values[name]
        if ref is None:
            return None
        per_channel = tuple(ref.strides[0] if d == 1 else 0 for d in range(len(sizes)))
        return convert(reads.load(Access(ref.buffer, per_channel, ref.offset), ref.dtype), held)

    def op(fn: str, *args: Value) -> Value:
        return Value(fn, args, held)

    x = convert(reads.load(values["input"].access(), values["input"].dtype), held)
    mean, var, weight, bias = (
        channel(n) for n in ("running_mean", "running_var", "weight", "bias")
    )
    assert mean is not None and var is not None
    scale = op("div", literal(1.0, held), op("sqrt", op("add", var, literal(values["eps"], held))))
    scale = scale if weight is None else op("mul", scale, weight)
    y = op("mul", op("sub", x, mean), scale)
    y = y if bias is None else op("add", y, bias)
    normalized = elementwise(ctx, "native_batch_norm", out, reads, convert(y, dtype))
    statistics = [
        elementwise(ctx, "native_batch_norm", r, Reads(), literal(0, dtype_name(r.dtype)))
        for r in result[1:3]
    ]
    return (normalized, *statistics)


@lowers("slice_backward")
def lower_slice_backward(
    ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any
) -> Any:
    """Zeros around the gradient, without writing them first."""
    if values["step"] != 1:
        return None
    start = values["start"]
    sizes = geometry(result)[0]
    d = values["dim"] % len(sizes)
    start = 0 if start is None else sz.of(start)
    if not isinstance(start, int):
        return None
    if start < 0:
        start = start + sizes[d]
    elif isinstance(sizes[d], int):
        start = min(start, sizes[d])
    return padded(ctx, values["grad_output"], result, {d: start})


@lowers("select_backward")
def lower_select_backward(
    ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any
) -> Any:
    ref: TensorRef = values["grad_output"]
    sizes = geometry(result)[0]
    d, index = values["dim"] % len(sizes), sz.of(values["index"])
    if not isinstance(index, int):
        return None  # it may count from the end
    if index < 0:
        index = index + sizes[d]
    one = TensorRef(
        ref.buffer,
        ref.dtype,
        (*ref.sizes[:d], 1, *ref.sizes[d:]),
        (*ref.strides[:d], 0, *ref.strides[d:]),
        ref.offset,
    )
    return padded(ctx, one, result, {d: index})


def padded(ctx: Lowering, ref: TensorRef, result: Any, starts: dict[int, sz.Size]) -> Any:
    """The tensor at an offset in one dimension of zeros of the result's shape."""
    sizes, strides, _ = geometry(result)
    dtype = dtype_name(result.dtype)
    if dtype not in LOOPS or ref.dtype != dtype or not is_dense(sizes, strides):
        return None
    ((d, start),) = starts.items()
    moved = ref.offset - start * ref.strides[d]
    guard = Guard(tuple(1 if k == d else 0 for k in range(len(sizes))), start * -1, ref.sizes[d])
    reads = Reads()
    x = reads.load(Access(ref.buffer, ref.strides, moved, guard), dtype)
    return elementwise(ctx, "slice_backward", result, reads, x)
