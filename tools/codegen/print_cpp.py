"""Prints element expressions as C++ over the vector functions of packages/aten/csrc/kernels/cpu/vec.h.

Operands are vectors of the computation's type, scalars are plain numbers. Literals and scalars become vectors by
`lit(x, number)`, where x is any operand and only gives the type. Infix operators are those of vec.h; `//`, `%` and `**`
are the functions floor_divide, remainder and pow.
"""

from __future__ import annotations

import math

from tools.codegen.dtypes import enum
from tools.codegen.expr import Cast, Element, Name, Number, free_names, infix, shared_subexpressions


def cpp_number(value: float) -> str:
    if isinstance(value, int):
        return str(value) if abs(value) < 2**31 else f"INT64_C({value})"
    if math.isnan(value):
        return '__builtin_nan("")'
    if math.isinf(value):
        return "__builtin_inf()" if value > 0 else "-__builtin_inf()"
    return repr(value)


def cpp_element(
    x: Element,
    operands: list[str],
    scalars: list[str] | None = None,
    named: dict[Element, str] | None = None,
) -> str:
    """One C++ expression. `operands` must not be empty: the first one gives literals their type."""
    scalars = scalars or []
    like = operands[0]

    def name(n: str) -> str:
        return f"lit({like}, {n})" if n in scalars else n

    return infix(
        x,
        number=lambda v: f"lit({like}, {cpp_number(v)})",
        function=lambda fn, args: f"{fn}({', '.join(args)})",
        named=named,
        name=name,
        cast=lambda arg, dtype: f"cast<{enum(dtype)}>({arg})",
    )


def cpp_statements(x: Element, operands: list[str], scalars: list[str] | None = None) -> list[str]:
    """Statements that compute x, shared parts once, ending with `return ...;`. Unused operands are marked."""
    used = free_names(x)
    # Literals take their type from the first operand, so that one always counts as used.
    needs_type = any(isinstance(n, Number) for n in _nodes(x)) or any(
        s in used for s in scalars or []
    )
    lines = [
        f"(void){o};"
        for i, o in enumerate(operands)
        if o not in used and not (i == 0 and needs_type)
    ]
    named: dict[Element, str] = {}
    for shared in shared_subexpressions(x):
        text = cpp_element(shared, operands, scalars, named)
        named[shared] = f"t{len(named)}"
        lines.append(f"const auto {named[shared]} = {text};")
    # A bare number or scalar is a vector too.
    result = named[x] if x in named else cpp_element(x, operands, scalars, named)
    return [*lines, f"return {result};"]


def cpp_lambda(
    x: Element, operands: list[str], scalars: list[str] | None = None, indent: str = ""
) -> str:
    """A generic lambda over the operands; captures the scalars by value."""
    parameters = ", ".join(f"auto {o}" for o in operands)
    capture = "=" if any(s in free_names(x) for s in scalars or []) else ""
    statements = cpp_statements(x, operands, scalars)
    if len(statements) == 1:
        return f"[{capture}]({parameters}) {{ {statements[0]} }}"
    body = "".join(f"{indent}  {line}\n" for line in statements)
    return f"[{capture}]({parameters}) {{\n{body}{indent}}}"


def primitives_of(x: Element) -> frozenset[str]:
    """Names of the functions that an expression calls (to report what vec.h must have)."""
    from tools.codegen.expr import Call

    return frozenset(n.fn for n in _nodes(x) if isinstance(n, Call))


def _nodes(x: Element) -> list[Element]:
    from tools.codegen.expr import walk

    return [n for n in walk(x) if isinstance(n, (Element, Name, Number, Cast))]
