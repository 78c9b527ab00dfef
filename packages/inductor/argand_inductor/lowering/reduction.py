"""Reductions: a loop over the operand's index space that combines some of its dimensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from argand_c10.lowerings import ReductionLowering
from argand_inductor import sizes as sz
from argand_inductor.loop_ir import Access, Loop, Value, compute_dtype
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
    if computed != operand.dtype:
        x = convert(x, computed)
    elements = Elements(acc)
    if acc == "bool":
        body = convert(rule.map(Elements(computed), x), "bool")
    else:
        body = rule.map(elements, convert(x, acc))
    held = compute_dtype(acc)
    total, n = (
        Value("total", (), held),
        convert(Value("count", (), "float64" if is_float(acc) else "int64", count), acc),
    )
    final = rule.final(elements, total, n)
    final = round_to(convert(final, out), out)
    keepdim = len(sizes) == len(operand.sizes)
    written = tuple(strides[d] for d in kept) if keepdim else strides
    write = (*written, *([0] * len(dims)))
    if all(operand.sizes[d] == 1 for d in dims):  # nothing to combine but the start value
        start = extreme(held, rule.init == "highest") if isinstance(rule.init, str) else rule.init
        body = replace_total(final, rule.combine(elements, literal(start, held), body))
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


def parts_of(ctx: Lowering, loop: Loop) -> tuple[int, int] | None:
    """(dimension, number of parts) to split a reduction into, where there is too little else to do at once, or where parts that
    walk through whole rows suit the memory better; None to leave it."""
    hints = ctx.graph.hints
    kept = len(loop.sizes) - loop.reduced
    steps = [sz.evaluate(s, hints) for s in loop.reads[0].strides]
    counts = [sz.evaluate(s, hints) for s in loop.sizes]
    rows, columns = math.prod(counts[kept:]), math.prod(counts[:kept])
    d = max(range(kept, len(counts)), key=lambda k: (steps[k], counts[k]))
    inner_kept = min((steps[k] for k in range(kept) if counts[k] > 1), default=1 << 62)
    by_columns = inner_kept < min(
        (steps[k] for k in range(kept, len(counts)) if counts[k] > 1), default=1 << 62
    )
    if rows * columns < 1 << 16 or (columns >= 8 and not by_columns):
        return None
    least = 32 if by_columns else 4096  # elements of a part
    for parts in range(32, 1, -1):
        if (
            rows >= parts * least
            and counts[d] > parts
            and sz.divide(loop.sizes[d], parts) is not None
        ):
            return d, parts
    return None


def split_reduction(ctx: Lowering, name: str, loop: Loop, acc: str) -> Loop:
    """A reduction as one of parts, which is added to the graph, and one of the parts' results, which is returned."""
    found = parts_of(ctx, loop)
    if found is None:
        return loop
    d, parts = found
    rule, held = loop.reduction, loop.body.dtype
    assert rule is not None and loop.final is not None
    kept = len(loop.sizes) - loop.reduced
    length = sz.divide(loop.sizes[d], parts)
    assert length is not None
    reads = [Access(a.buffer, (a.strides[d] * length, *a.strides), a.offset) for a in loop.reads]
    partial = ctx.scratch("bool" if acc == "bool" else held, (parts, *loop.sizes[:kept]))
    first = Loop(
        Access(partial.name, (*partial.strides, *([0] * loop.reduced))), partial.dtype,
        (parts, *loop.sizes[:d], length, *loop.sizes[d + 1 :]), reads, loop.read_dtypes, loop.body,
        reduced=loop.reduced, reduction=rule, final=Value("total", (), held),
    )  # fmt: skip
    ctx.emit(first, name)
    again = [Access(partial.name, (*partial.strides[1:], partial.strides[0]))]
    return Loop(
        Access("", (*loop.write.strides[:kept], 0)), loop.dtype, (*loop.sizes[:kept], parts), again, [partial.dtype],
        Value("load", (), held, 0), reduced=1, reduction=rule, final=loop.final,
    )  # fmt: skip
