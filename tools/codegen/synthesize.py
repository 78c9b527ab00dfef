"""Backward operators from `d(expr)`: a pointwise operator per derivative, itself differentiable to every order."""

from __future__ import annotations

from dataclasses import dataclass

from tools.codegen import dtypes
from tools.codegen.derive import derive
from tools.codegen.expr import Element, Name, free_names, infix, make, number_text
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
            arguments.append(Argument(a.name, a.type.plain(), a.default if a.kwonly else _required(), a.kwonly))
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
        texts: dict[str | None, str] = {}
        for variant, x in op.expr.items():
            derivative = derive(x, a.name, complex_values)
            factor = make("conj", derivative) if complex_values else derivative
            texts[variant] = tensor_source(make("mul", Name("grad"), factor), "grad")
        found[a.name] = _choose(op, texts)
    return found


def _choose(op: Operator, texts: dict[str | None, str]) -> str:
    """One expression for all variants: conditional on the variant argument where they differ."""
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    argument = op.variant_argument
    assert argument is not None
    *first, last = texts.items()
    text = last[1]
    for variant, branch in reversed(first):
        text = f'({branch}) if {argument.name} == "{variant}" else ({text})'
    return text


def tensor_source(x: Element, like: str) -> str:
    """An element expression as a tensor expression over registered operators.

    A result without any tensor in it becomes zeros (or the number) like the tensor `like`.
    """
    if not free_names(x):
        return f"zeros_like({like})" if getattr(x, "value", None) == 0 else f"full_like({like}, {infix(x, number_text, _function)})"
    return infix(x, number_text, _function)


def _function(fn: str, args: list[str]) -> str:
    return f"{fn}({', '.join(args)})"
