"""Pointwise operators: one loop over the result, from the registry's element functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argand_c10.lowerings import PointwiseLowering
from argand_inductor import sizes as sz
from argand_inductor.loop_ir import (
    HALF,
    INDEX,
    ITEMSIZE,
    WIDE_UNSIGNED,
    Access,
    Loop,
    Value,
    compute_dtype,
)
from argand_inductor.lowering.elements import Elements, convert, literal, round_to
from argand_inductor.lowering.tensors import TensorRef, can_be_made, dtype_name, geometry

if TYPE_CHECKING:
    from argand_inductor.lowering.graph import Lowering

_INTEGERS = frozenset({"uint8", "int8", "int16", "int32", "int64", *WIDE_UNSIGNED})
_LOOPS = frozenset({"bool", *_INTEGERS, "float16", "bfloat16", "float32", "float64"})


def computation_dtype(
    rule: PointwiseLowering, bound: dict[str, Any], fakes: dict[str, Any], result: str
) -> str:
    """The dtype that the kernel computes in, as eager chooses it."""
    if rule.result is None:
        return result
    values = [
        fakes[name]
        for name in rule.operands
        if name not in rule.conditions and bound[name] is not None
    ]
    return dtype_name(rule.computation(*values))


class Reads:
    """The distinct reads of a loop in the making."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []
        self.dtypes: list[str] = []

    def load(self, access: Access, dtype: str) -> Value:
        """The element at `access`."""
        half = dtype if dtype in HALF else ""
        for i, (a, d) in enumerate(zip(self.accesses, self.dtypes, strict=True)):
            if a == access and d == dtype:
                return Value("load", (), compute_dtype(dtype), i, half)
        self.accesses.append(access)
        self.dtypes.append(dtype)
        return Value("load", (), compute_dtype(dtype), len(self.accesses) - 1, half)


def operand_value(
    ctx: Lowering, reads: Reads, operand: Any, sizes: tuple[sz.Size, ...], dtype: str
) -> Value | None:
    """A tensor's element, or a number, as an element of `dtype`; None for what is neither."""
    if isinstance(operand, TensorRef):
        if operand.dtype not in _LOOPS:
            return None
        if operand.buffer in ctx.constant_values:
            return convert(ctx.constant_values[operand.buffer], dtype)
        access = operand.broadcast(sizes)
        if operand.buffer in ctx.ranges:
            start, step = ctx.ranges[operand.buffer]
            access = Access(
                INDEX, tuple(s * step for s in access.strides), start + access.offset * step
            )
        return convert(reads.load(access, operand.dtype), dtype)
    if isinstance(operand, complex):
        return None
    if isinstance(operand, (bool, int, float)):
        return literal(operand, dtype)
    size = sz.of(operand)  # a symbolic integer
    if isinstance(size, int):
        return literal(size, dtype)
    return convert(Value("size", (), "int64", size), dtype)


def is_number(rule: PointwiseLowering, name: str, operand: Any, fake: Any) -> bool:
    """What eager takes for a number: on the CPU also a tensor of one element, as the second of two operands."""
    if not isinstance(operand, TensorRef):
        return True
    single = all(size == 1 for size in operand.sizes)
    return single and rule.operands[1:] == (name,) and fake.device.type == "cpu"


def lower_pointwise(
    ctx: Lowering,
    rule: PointwiseLowering,
    bound: dict[str, Any],
    fakes: dict[str, Any],
    result: Any,
) -> Loop | None:
    """The loop, or None where the operator has to be called."""
    dtype = dtype_name(result.dtype)
    computed = computation_dtype(rule, bound, fakes, dtype)
    if computed not in _LOOPS or dtype not in _LOOPS or computed not in rule.dtypes:
        return None
    divisor = bound[rule.operands[-1]]
    if rule.divides and computed in _INTEGERS:
        # The operator refuses zeros, and what becomes zero in the dtype.
        if type(divisor) is not int or divisor % (1 << 8 * ITEMSIZE[computed]) == 0:
            return None
    sizes, strides, _ = geometry(result)
    if not can_be_made(sizes, strides):
        return None
    on_cpu = result.device.type == "cpu"
    reads = Reads()
    values: list[Value] = []
    for name in rule.operands:
        if bound[name] is None:
            return None
        held = "bool" if name in rule.conditions else computed
        if rule.exact_numbers and is_number(rule, name, bound[name], fakes[name]):
            held = compute_dtype(computed)
        value = operand_value(ctx, reads, bound[name], sizes, held)
        if value is None:
            return None
        values.append(value)
    for name in rule.scalars:
        held = computed if on_cpu and rule.scalars == ("alpha",) else compute_dtype(computed)
        value = operand_value(ctx, reads, bound[name], sizes, held)
        if value is None:
            return None
        values.append(value)
    variant = bound[rule.variant] if rule.variant is not None else None
    function = rule.functions.get(variant)
    if function is None:
        return None
    value = function(Elements(computed), *values)
    if rule.result == "bool":
        value = convert(value, "bool")
    elif value.dtype != compute_dtype(dtype):
        return None
    else:
        value = round_to(value, dtype)
    buffer = ctx.new_result(dtype, sizes, strides)
    return Loop(
        Access(buffer.name, strides), dtype, sizes, reads.accesses, reads.dtypes, value,
        cost=rule.costs.get(variant, 1),
    )  # fmt: skip
