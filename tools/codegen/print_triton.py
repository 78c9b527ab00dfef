"""Prints element expressions as Triton over the functions of argand_aten_cuda/math.py, of complex numbers over complex_math.py.

Operands are tensors of the computation's dtype (conditions: int1), scalars are numbers of that dtype; complex ones are pairs of their
parts. Literals become such numbers by `math.number(value, like.dtype)`, where `like` is an operand that gives the type.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from tools.codegen.expr import (
    MASK,
    PRIMITIVES,
    Call,
    Cast,
    Element,
    Name,
    Number,
    shared_subexpressions,
    walk,
)
from tools.codegen.print_python import safe

_WRITTEN: Final[dict[str, str]] = {
    "where": "tl.where({0}, {1}, {2})", "real": "{0}", "conj": "{0}",
    "bit_and": "({0} & {1})", "bit_or": "({0} | {1})", "bit_xor": "({0} ^ {1})",
    "eq": "({0} == {1})", "ne": "({0} != {1})", "lt": "({0} < {1})", "le": "({0} <= {1})", "gt": "({0} > {1})", "ge": "({0} >= {1})",
}  # fmt: skip

# Primitives that Triton has not: of complex numbers, or loops of any length.
HOST_ONLY: Final = frozenset({"imag", "airy_ai", "polynomial"})

# Primitives of complex numbers (complex_math.py) whose results are complex or masks, and those whose results are real.
_COMPLEX: Final = frozenset(
    "add sub mul div neg reciprocal conj where sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt pow sigmoid sin cos tan sinh cosh tanh "
    "asin acos atan asinh acosh atanh eq ne isnan isinf isfinite".split()
)
_COMPLEX_TO_REAL: Final = frozenset({"abs", "angle"})


def _call_format(name: str, arity: int) -> str:
    return f"math.argand_{name}({', '.join(f'{{{i}}}' for i in range(arity))})"


# primitive -> its call; {0}, {1}, {2} are the arguments.
FORMATS: Final[Mapping[str, str]] = {
    name: _WRITTEN.get(name, _call_format(name, len(p.args)))
    for name, p in PRIMITIVES.items()
    if name not in HOST_ONLY
}


def _number(value: float, like: str, is_complex: bool) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        text = 'float("nan")' if math.isnan(value) else f'float("{"-" if value < 0 else ""}inf")'
    else:
        text = repr(value)
    return (
        f"complex_math.number({text}, {like})"
        if is_complex
        else f"math.number({text}, {like}.dtype)"
    )


def _format(node: Call, is_complex: bool) -> str:
    if is_complex and any(a.kind != MASK for a in node.args):
        assert node.fn in _COMPLEX | _COMPLEX_TO_REAL
        return f"complex_{_call_format(node.fn, len(node.args))}"
    return FORMATS[node.fn]


def triton_element(
    x: Element, like: str, named: Mapping[Element, str] | None = None, is_complex: bool = False
) -> str:
    """One Triton expression; `like` gives literals their dtype. `is_complex`: values are pairs."""
    named = named or {}

    def show(node: Element, top: bool = False) -> str:
        if not top and node in named:
            return named[node]
        if isinstance(node, Number):
            return _number(node.value, like, is_complex)
        if isinstance(node, Name):
            return safe(node.id)
        if isinstance(node, Cast):
            return f"math.cast({show(node.arg)}, tl.{node.dtype})"
        assert isinstance(node, Call)
        return _format(node, is_complex).format(*(show(a) for a in node.args))

    return show(x, top=True)


def triton_function(name: str, parameters: list[str], x: Element, is_complex: bool = False) -> str:
    """`@triton.jit def name(...)` that returns x, shared parts computed once."""
    masks = {n.id for n in walk(x) if isinstance(n, Name) and n.kind == MASK}
    like = safe(next((p for p in parameters if p not in masks), parameters[0]))
    named: dict[Element, str] = {}
    lines: list[str] = []
    for shared in shared_subexpressions(x):
        text = triton_element(shared, like, named, is_complex)
        named[shared] = f"t{len(named)}"
        lines.append(f"{named[shared]} = {text}")
    lines.append(f"return {named[x] if x in named else triton_element(x, like, named, is_complex)}")
    header = f"@triton.jit\ndef {name}({', '.join(safe(p) for p in parameters)}):\n"
    return header + "".join(f"    {line}\n" for line in lines)


def is_printable(x: Element) -> bool:
    return not any(isinstance(n, Call) and n.fn in HOST_ONLY for n in walk(x))


def is_complex_printable(x: Element) -> bool:
    """Whether x has a printed form on complex numbers: neither casts nor real-valued parts, but for x as a whole."""
    if isinstance(x, Call) and x.fn in _COMPLEX_TO_REAL:
        return all(map(is_complex_printable, x.args))
    calls = [n for n in walk(x) if isinstance(n, Call)]
    of_values = [n for n in calls if any(a.kind != MASK for a in n.args)]
    return all(n.fn in _COMPLEX for n in of_values) and not any(
        isinstance(n, Cast) for n in walk(x)
    )
