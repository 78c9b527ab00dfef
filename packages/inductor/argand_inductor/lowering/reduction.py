"""Reductions: a loop over the operand's index space that combines some of its dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argand_c10.lowerings import ReductionLowering

from .. import sizes as sz
from ..loop_ir import Access, Loop, Value, compute_dtype
from .elements import Elements, convert, extreme, is_float, literal, round_to
from .pointwise import Reads
from .tensors import TensorRef, dtype_name, geometry, is_dense

if TYPE_CHECKING:
    from .graph import Lowering


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
    if not isinstance(operand, TensorRef) or operand.dtype.startswith("complex") or not operand.sizes:
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
    if rule.nonempty and not (isinstance(count, int) and count > 0):
        return None
    sizes, strides, _ = geometry(result)
    if not is_dense(sizes, strides):
        return None
    order = kept + dims
    space = tuple(operand.sizes[d] for d in order)
    reads = Reads()
    x = reads.load(Access(operand.buffer, tuple(operand.strides[d] for d in order), operand.offset), operand.dtype)
    if computed != operand.dtype:
        x = convert(x, computed)
    elements = Elements(acc)
    if acc == "bool":
        body = convert(rule.map(Elements(computed), x), "bool")
    else:
        body = rule.map(elements, convert(x, acc))
    held = compute_dtype(acc)
    total, n = Value("total", (), held), convert(Value("count", (), "float64" if is_float(acc) else "int64", count), acc)
    final = rule.final(elements, total, n)
    final = round_to(convert(final, out), out)
    keepdim = len(sizes) == len(operand.sizes)
    written = tuple(strides[d] for d in kept) if keepdim else strides
    buffer = ctx.new_buffer(out, sizes, strides)
    if all(operand.sizes[d] == 1 for d in dims):  # nothing to combine but the start value
        start = extreme(held, rule.init == "highest") if isinstance(rule.init, str) else rule.init
        body = replace_total(final, rule.combine(elements, literal(start, held), body))
        write = Access(buffer.name, (*written, *([0] * len(dims))))
        return Loop(write, out, space, reads.accesses, reads.dtypes, body)
    return Loop(
        Access(buffer.name, (*written, *([0] * len(dims)))), out, space, reads.accesses, reads.dtypes, body,
        reduced=len(dims), reduction=rule, final=final, cost=1,
    )  # fmt: skip
