"""Prints element expressions as NumPy, for the references that tests compare with.

Generated functions work on arrays of the computation's dtype (float64 for floating-point tests) and call the primitives of
runtime/reference.py, imported as `R`, which are NumPy's and SciPy's own functions.
"""

from __future__ import annotations

import math

from tools.codegen.expr import Element, infix, parse_element
from tools.codegen.model import Operator
from tools.codegen.print_python import parameters, safe

# Combinations that NumPy reduces by itself.
_UFUNCS = {
    "a + b": "add", "a * b": "multiply", "maximum(a, b)": "maximum", "minimum(a, b)": "minimum", "a | b": "logical_or",
    "a & b": "logical_and", "a ^ b": "bitwise_xor",
}  # fmt: skip


def _number(value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "R.nan" if math.isnan(value) else ("R.inf" if value > 0 else "(-R.inf)")
    return repr(value)


def numpy_element(x: Element) -> str:
    """One NumPy expression."""
    return infix(
        x,
        _number,
        lambda fn, args: f"R.{fn}({', '.join(args)})",
        name=safe,
        cast=lambda a, d: f'R.cast({a}, "{d}")',
    )


def combine_ufunc(x: Element) -> str | None:
    """The NumPy ufunc of a combination over `a` and `b`."""
    return next((f for text, f in _UFUNCS.items() if parse_element(text, ["a", "b"]) == x), None)


def reference_function(op: Operator) -> str | None:
    """`def <identifier>(...)` with the schema's parameters; None where there is none to generate."""
    header = f"def {op.identifier}({parameters(op.schema.arguments)}):\n"
    if op.reference is not None:
        return header + f"    return {op.reference}\n"
    if op.kind == "pointwise" and op.expr:
        return header + _pointwise(op)
    first = safe(op.schema.arguments[0].name) if op.schema.arguments else ""
    if op.kind == "reduction" and op.reduce is not None:
        ufunc = combine_ufunc(op.reduce.combine)
        if ufunc is None:
            return None
        names = {a.name: a for a in op.schema.arguments}
        dim = "dim" if "dim" in names else "None"
        keepdim = "keepdim" if "keepdim" in names else "False"
        mapped = f"lambda x: {numpy_element(op.reduce.map)}"
        final = f"lambda acc, n: {numpy_element(op.reduce.final)}"
        return (
            header
            + f"    return R.reduce(R.np.{ufunc}, {mapped}, {final}, {first}, {dim}, {keepdim})\n"
        )
    if op.kind == "scan" and op.scan is not None:
        ufunc = combine_ufunc(op.scan.combine)
        return (
            None if ufunc is None else header + f"    return R.scan(R.np.{ufunc}, {first}, dim)\n"
        )
    return None


def moments_function(op: Operator) -> str | None:
    """`def <identifier>_moments(...)`, which returns the mean and the variance of each result; None where the registry states none."""
    if not op.moments:
        return None
    header = f"def {op.identifier}_moments({parameters(op.schema.arguments)}):\n"
    return header + f"    return {op.moments['mean']}, {op.moments['var']}\n"


def _pointwise(op: Operator) -> str:
    if None in op.expr or op.variant_argument is None:
        return f"    return {numpy_element(next(iter(op.expr.values())))}\n"
    lines = ""
    for variant, x in op.expr.items():
        lines += f"    if {safe(op.variant_argument.name)} == {variant!r}:\n        return {numpy_element(x)}\n"
    return lines + f"    raise ValueError({safe(op.variant_argument.name)})\n"
