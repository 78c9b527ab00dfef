"""Prints element expressions as C++ over the vector functions of packages/aten/csrc/kernels/cpu/vec.h.

Operands are vectors of the computation's type (conditions: masks), scalars are plain numbers. Literals and scalars become
vectors by `lit(x, number)`, where x is any operand and only gives the type. Infix operators are those of vec.h; `//`, `%` and
`**` are the functions floor_divide, remainder and pow.
"""

from __future__ import annotations

import math

from tools.codegen.dtypes import enum
from tools.codegen.emit_cpp_ops import safe
from tools.codegen.expr import (
    MASK,
    Call,
    Element,
    Name,
    Number,
    free_names,
    infix,
    shared_subexpressions,
    walk,
)


def cpp_number(value: float) -> str:
    if isinstance(value, int):
        return str(value) if abs(value) < 2**31 else f"INT64_C({value})"
    if math.isnan(value):
        return '__builtin_nan("")'
    if math.isinf(value):
        return "__builtin_inf()" if value > 0 else "-__builtin_inf()"
    return repr(value)


def _typing_operand(x: Element, operands: list[str]) -> str:
    """The operand that gives literals their type: the first one that is not a condition."""
    masks = {safe(n.id) for n in walk(x) if isinstance(n, Name) and n.kind == MASK}
    return next((o for o in operands if o not in masks), operands[0])


def cpp_element(
    x: Element,
    operands: list[str],
    scalars: list[str] | None = None,
    named: dict[Element, str] | None = None,
    like: str | None = None,
) -> str:
    """One C++ expression.

    Args:
      operands: the C++ names of the operands, at least one.
      scalars: names of scalar arguments.
      like: the operand that gives literals their type.
    """
    of_type = like or _typing_operand(x, operands)

    def name(n: str) -> str:
        return f"lit({of_type}, {safe(n)})" if n in (scalars or []) else safe(n)

    return infix(
        x,
        number=lambda v: f"lit({of_type}, {cpp_number(v)})",
        function=lambda fn, args: f"{fn}({', '.join(args)})",
        named=named,
        name=name,
        cast=lambda arg, dtype: f"cast<{enum(dtype)}>({arg})",
    )


# Comparisons of choices by sign, and which of the two values is the one of positive numbers.
BRANCHES = {"gt": 0, "le": 1}


def cpp_statements(
    x: Element, operands: list[str], scalars: list[str] | None = None, branches: bool = False
) -> list[str]:
    """Statements that compute x, shared parts once, ending with `return ...;`. Unused operands are marked.

    `branches`: x is a `where` of vectors of floats, of whose values one (BRANCHES) is all that is computed for vectors that take no other.
    """
    like = _typing_operand(x, operands)
    used = {safe(n) for n in free_names(x)}
    if any(isinstance(n, Number) for n in walk(x)) or any(safe(s) in used for s in scalars or []):
        used.add(like)
    lines = [f"(void){o};" for o in operands if o not in used]
    named: dict[Element, str] = {}
    for shared in shared_subexpressions(x):
        text = cpp_element(shared, operands, scalars, named, like)
        named[shared] = f"t{len(named)}"
        lines.append(f"const auto {named[shared]} = {text};")
    if branches:
        assert isinstance(x, Call) and x.fn == "where"
        mask, *values = x.args
        assert isinstance(mask, Call)
        cheap, all_of = (values[0], "mask") if BRANCHES[mask.fn] == 0 else (values[1], "~mask")
        lines += [
            f"const auto mask = {cpp_element(mask, operands, scalars, named, like)};",
            f"if (argand_all_i64((vi64){all_of})) return {cpp_element(cheap, operands, scalars, named, like)};",
        ]
        named[mask] = "mask"
    result = named[x] if x in named else cpp_element(x, operands, scalars, named, like)
    return [*lines, f"return {result};"]


def cpp_lambda(
    x: Element,
    operands: list[str],
    scalars: list[str] | None = None,
    indent: str = "",
    branches: bool = False,
) -> str:
    """A generic lambda over the operands; captures the scalars by value."""
    parameters = ", ".join(f"auto {o}" for o in operands)
    capture = "=" if any(s in free_names(x) for s in scalars or []) else ""
    statements = cpp_statements(x, operands, scalars, branches)
    if len(statements) == 1:
        return f"[{capture}]({parameters}) {{ {statements[0]} }}"
    body = "".join(f"{indent}  {line}\n" for line in statements)
    return f"[{capture}]({parameters}) {{\n{body}{indent}}}"
