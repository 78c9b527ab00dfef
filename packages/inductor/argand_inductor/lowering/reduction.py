"""Reductions: a loop over the operand's index space that combines some of its dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argand_c10.lowerings import ReductionLowering
from argand_inductor import sizes as sz
from argand_inductor.loop_ir import INDEX, Access, Guard, Loop, Value, compute_dtype
from argand_inductor.lowering.elements import (
    Elements,
    convert,
    extreme,
    is_float,
    literal,
    round_to,
)
from argand_inductor.lowering.pointwise import Reads
from argand_inductor.lowering.tensors import TensorRef, dtype_name, geometry, is_dense

if TYPE_CHECKING:
    from argand_inductor.lowering.graph import Lowering


def reduced_dims(bound: dict[str, Any], ndim: int) -> list[int]:
    """The dimensions that `dim` names; none or an empty list: all."""
    dim = bound.get("dim")
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(ndim))
    dims = dim if isinstance(dim, (list, tuple)) else (dim,)
    return sorted({d % ndim if ndim else 0 for d in dims}) if ndim else []


def replace_total(value: Value, total: Value) -> Value:
    """`value` with the total of a reduction put in."""
    if value.op == "total":
        return total
    if not value.args:
        return Value("size", (), value.dtype, value.detail) if value.op == "count" else value
    args = tuple(replace_total(a, total) for a in value.args)
    return Value(value.op, args, value.dtype, value.detail, value.half)


def lower_reduction(
    ctx: Lowering, name: str, rule: ReductionLowering, bound: dict[str, Any], result: Any
) -> Loop | None:
    """The loop, or None where the operator has to be called."""
    operand = bound["self"]
    if (
        not isinstance(operand, TensorRef)
        or operand.dtype.startswith("complex")
        or not operand.sizes
    ):
        return None
    out = dtype_name(result.dtype)
    computed = dtype_name(bound["dtype"]) if bound.get("dtype") is not None else operand.dtype
    if computed not in rule.accumulators:
        return None
    acc, expected = rule.accumulators[computed]
    if expected != out or acc.startswith("complex"):
        return None
    dims = reduced_dims(bound, len(operand.sizes))
    kept = [d for d in range(len(operand.sizes)) if d not in dims]
    count = sz.product(operand.sizes[d] for d in dims)
    if rule.nonempty and not sz.is_positive(count):
        return None
    sizes, strides, _ = geometry(result)
    if not is_dense(sizes, strides):
        return None
    order = kept + dims
    space = tuple(operand.sizes[d] for d in order)
    reads = Reads()
    x = reads.load(
        Access(operand.buffer, tuple(operand.strides[d] for d in order), operand.offset),
        operand.dtype,
    )
    body = mapped_element(
        rule, x if computed == operand.dtype else convert(x, computed), computed, acc
    )
    held = compute_dtype(acc)
    n = convert(Value("count", (), "float64" if is_float(acc) else "int64", count), acc)
    final = rule.final(Elements(acc), Value("total", (), held), n)
    final = round_to(convert(final, out), out)
    keepdim = len(sizes) == len(operand.sizes)
    written = tuple(strides[d] for d in kept) if keepdim else strides
    write = (*written, *([0] * len(dims)))
    if all(operand.sizes[d] == 1 for d in dims):  # nothing to combine but the start value
        start = extreme(held, rule.init == "highest") if isinstance(rule.init, str) else rule.init
        body = replace_total(final, rule.combine(Elements(acc), literal(start, held), body))
        buffer = ctx.new_buffer(out, sizes, strides)
        return Loop(Access(buffer.name, write), out, space, reads.accesses, reads.dtypes, body)
    whole = Loop(
        Access("", write), out, space, reads.accesses, reads.dtypes, body,
        reduced=len(dims), reduction=rule, final=final, cost=1,
    )  # fmt: skip
    loop = split_reduction(ctx, name, whole, acc)
    buffer = ctx.new_buffer(out, sizes, strides)
    loop.write = Access(buffer.name, loop.write.strides)
    return loop


def mapped_element(rule: ReductionLowering, x: Value, computed: str, acc: str) -> Value:
    """What is combined, in the accumulator's dtype, of an element of dtype `computed`."""
    if acc == "bool":
        return convert(rule.map(Elements(computed), x), "bool")
    mapped: Value = rule.map(Elements(acc), convert(x, acc))
    return mapped


def split_reduction(ctx: Lowering, name: str, loop: Loop, acc: str) -> Loop:
    """A reduction as one of parts, which is added to the graph, and one of the parts' results, which is returned."""
    found = ctx.target().parts_of(loop, ctx.graph.hints)
    if found is None:
        return loop
    d, parts = found.dim, found.count
    rule, held = loop.reduction, loop.body.dtype
    assert rule is not None and loop.final is not None
    kept = len(loop.sizes) - loop.reduced
    length = sz.ceil_divide(loop.sizes[d], parts)
    reads = [Access(a.buffer, (a.strides[d] * length, *a.strides), a.offset) for a in loop.reads]
    read_dtypes, body = list(loop.read_dtypes), loop.body
    if not found.whole:
        start = extreme(held, rule.init == "highest") if isinstance(rule.init, str) else rule.init
        along = (length, *(1 if k == d else 0 for k in range(len(loop.sizes))))
        guard = Guard(along, 0, loop.sizes[d])
        reads = [Access(a.buffer, a.strides, a.offset, guard) for a in reads]
        index = Value("load", (), "int64", len(reads))
        reads.append(Access(INDEX, along))
        read_dtypes.append("int64")
        end = convert(size_value(loop.sizes[d]), "int64")
        inside = Value("lt", (index, end), "bool")
        body = Value("where", (inside, body, literal(start, held)), held)
    partial = ctx.scratch("bool" if acc == "bool" else held, (parts, *loop.sizes[:kept]))
    first = Loop(
        Access(partial.name, (*partial.strides, *([0] * loop.reduced))), partial.dtype,
        (parts, *loop.sizes[:d], length, *loop.sizes[d + 1 :]), reads, read_dtypes, body,
        reduced=loop.reduced, reduction=rule, final=Value("total", (), held),
    )  # fmt: skip
    ctx.emit(first, name)
    again = [Access(partial.name, (*partial.strides[1:], partial.strides[0]))]
    return Loop(
        Access("", (*loop.write.strides[:kept], 0)), loop.dtype, (*loop.sizes[:kept], parts), again, [partial.dtype],
        Value("load", (), held, 0), reduced=1, reduction=rule, final=loop.final,
    )  # fmt: skip


def size_value(size: sz.Size) -> Value:
    """A size as an int64."""
    return literal(size, "int64") if isinstance(size, int) else Value("size", (), "int64", size)
