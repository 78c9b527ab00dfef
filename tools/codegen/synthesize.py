"""Backward operators from `d(expr)`: a pointwise operator per derivative, itself differentiable to every order."""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen import dtypes
from tools.codegen.derive import derive
from tools.codegen.expr import (
    Element,
    Name,
    free_names,
    infix,
    make,
    number_text,
    shared_subexpressions,
)
from tools.codegen.model import Argument, Operator, Result, Schema, Type

GRAD = "grad_output"  # the incoming gradient's name in synthesized operators


@dataclass(frozen=True)
class Backward:
    """A synthesized operator, before its own gradients are read.

    call: the tensor expression by which the forward operator's gradient calls it.
    gradients: tensor expressions (text) of its own derivatives by argument; `grad` is the gradient flowing in.
    """

    operator: Operator
    call: str
    gradients: dict[str, str]


def backward_operator(op: Operator, arg: str, several: bool) -> Backward:
    """The operator that computes the gradient of `arg`.

    Args:
      several: more than one argument is derived by d(expr), so that the argument is part of the name.

    Raises:
      ExprError: when the expression has no derivative in the language.
    """
    differentiable = tuple(d for d in op.dtypes if dtypes.is_differentiable(d))
    complex_values = any(d in dtypes.COMPLEX for d in differentiable)
    expr: dict[str | None, Element] = {}
    for variant, x in op.expr.items():
        derivative = derive(x, arg, complex_values)
        factor = make("conj", derivative) if complex_values else derivative
        expr[variant] = make("mul", Name(GRAD), factor)
    used = frozenset().union(*(free_names(x) for x in expr.values()))
    arguments = [Argument(GRAD, Type("Tensor"))]
    for a in op.schema.arguments:
        if a.name in used or a is op.variant_argument:
            # Operands may be anything; scalars and the variant keep their defaults only by keyword.
            arguments.append(
                Argument(a.name, a.type.plain(), a.default if a.kwonly else _required(), a.kwonly)
            )
    name = f"{op.identifier}_backward" + (f"_{arg}" if several else "")
    schema = Schema(name, "", tuple(arguments), (Result(None, Type("Tensor")),))
    operator = Operator(
        schema=schema,
        kind="pointwise",
        family=op.family,
        dtypes=differentiable,
        promote="default",
        expr=expr,
        variants=("function",),
        doc=f"The gradient of `{op.name}` with respect to `{arg}`.",
        tolerance=op.tolerance,
        location=op.location,
        backward_of=op.name,
    )
    return Backward(operator, _call(schema, "grad"), _gradients(operator, complex_values))


def _required() -> object:
    from tools.codegen.model import REQUIRED

    return REQUIRED


def _call(schema: Schema, grad: str) -> str:
    parts = [grad]
    for a in schema.arguments[1:]:
        parts.append(f"{a.name}={a.name}" if a.kwonly else a.name)
    return f"{schema.name}({', '.join(parts)})"


def _gradients(op: Operator, complex_values: bool) -> dict[str, str]:
    """d/dgrad is the operator itself, on the new gradient (it is linear); the rest is derived and printed on tensors."""
    found = {GRAD: _call(op.schema, "grad")}
    for a in op.operands[1:]:
        derivatives: dict[str | None, Element] = {}
        for variant, x in op.expr.items():
            derivative = derive(x, a.name, complex_values)
            factor = make("conj", derivative) if complex_values else derivative
            derivatives[variant] = make("mul", Name("grad"), factor)
        found[a.name] = _choose(op, derivatives)
    return found


def _choose(op: Operator, derivatives: dict[str | None, Element]) -> str:
    """The text of a body: one branch per variant where they differ."""
    if len(set(derivatives.values())) == 1:
        return "\n".join(tensor_statements(next(iter(derivatives.values())), "grad"))
    argument = op.variant_argument
    assert argument is not None
    lines: list[str] = []
    count = 0
    *first, last = derivatives.items()
    for variant, x in first:
        block = tensor_statements(x, "grad", count)
        count += len(block)
        lines += [f'if {argument.name} == "{variant}":', *("    " + line for line in block)]
    return "\n".join([*lines, *tensor_statements(last[1], "grad", count)])


def tensor_statements(x: Element, like: str, first: int = 0) -> list[str]:
    """An element expression as statements over registered operators: shared parts once, then `return`.

    A result without any tensor in it becomes zeros (or the number) like the tensor `like`. Shared parts are called
    t<first>, t<first + 1>...
    """
    if not free_names(x):
        zero = getattr(x, "value", None) == 0
        return [
            f"return zeros_like({like})"
            if zero
            else f"return full_like({like}, {infix(x, number_text, _function)})"
        ]
    lines: list[str] = []
    named: dict[Element, str] = {}
    for shared in shared_subexpressions(x):
        text = infix(shared, number_text, _function, named)
        named[shared] = f"t{first + len(named)}"
        lines.append(f"{named[shared]} = {text}")
    return [*lines, f"return {named.get(x) or infix(x, number_text, _function, named)}"]


def _function(fn: str, args: list[str]) -> str:
    return f"{fn}({', '.join(args)})"
