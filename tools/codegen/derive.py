"""Symbolic derivatives of element expressions.

`derive(x, name)` is dx/dname, simplified by expr.make. Where a function has a kink, the derivative there is PyTorch's
choice (0 for abs at 0, one half each for minimum and maximum of equal values).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tools.codegen.expr import CONSTANTS, Call, Cast, Element, ExprError, Name, Number, call, make

_Rule = Callable[..., tuple[Element | None, ...]]


def _where(c: Element, a: Element | float, b: Element | float) -> Element:
    return make("where", c, a, b)  # type: ignore[arg-type]


def _sq(x: Element) -> Element:
    return x * x


def _pow_rule(y: Element, a: Element, b: Element) -> tuple[Element | None, ...]:
    if isinstance(b, Number):
        base = b * make("pow", a, Number(b.value - 1)) if b.value != 2 else 2 * a
        return (base, None)
    by_base = _where(call("eq", b, Number(0)), 0, b * make("pow", a, b - 1))
    at_zero = call("bit_and", call("eq", a, Number(0)), call("ge", b, Number(0)))
    return (by_base, _where(at_zero, 0, y * make("log", a)))


def _extremum(worse: str) -> _Rule:
    """minimum, maximum: the chosen one gets it all, equal ones half each, and with a NaN both."""

    def rule(y: Element, a: Element, b: Element) -> tuple[Element, Element]:
        tie = call("eq", a, b)
        return (
            _where(tie, 0.5, _where(call(worse, a, b), 0, 1)),
            _where(tie, 0.5, _where(call(worse, b, a), 0, 1)),
        )

    return rule


def _fextremum(better: str) -> _Rule:
    """fmin, fmax: a number wins over NaN; equal ones: the first."""

    def rule(y: Element, a: Element, b: Element) -> tuple[Element, Element]:
        first = call("bit_or", call(better, a, b), call("isnan", b))
        return (_where(first, 1, 0), _where(first, 0, 1))

    return rule


def _copysign(y: Element, a: Element, b: Element) -> tuple[Element | None, ...]:
    same = make("sign", a) * make("copysign", Number(1), b)
    return (same, None)


def _atan2(y: Element, a: Element, b: Element) -> tuple[Element, Element]:
    norm = _sq(a) + _sq(b)
    return (b / norm, -(a / norm))


def _zero(*_: Element) -> tuple[None, ...]:
    return (None, None, None)


# fn -> rule(y, *args) gives dy/darg for each argument, None for zero. y is the call itself, for reuse.
_RULES: Final[dict[str, _Rule]] = {
    "add": lambda y, a, b: (Number(1), Number(1)),
    "sub": lambda y, a, b: (Number(1), Number(-1)),
    "mul": lambda y, a, b: (b, a),
    "div": lambda y, a, b: (1 / b, -(y / b)),
    "neg": lambda y, a: (Number(-1),),
    "where": lambda y, c, a, b: (None, _where(c, 1, 0), _where(c, 0, 1)),
    "exp": lambda y, a: (y,),
    "exp2": lambda y, a: (y * CONSTANTS["M_LN2"],),
    "expm1": lambda y, a: (make("exp", a),),
    "log": lambda y, a: (1 / a,),
    "log2": lambda y, a: (1 / (a * CONSTANTS["M_LN2"]),),
    "log10": lambda y, a: (1 / (a * CONSTANTS["M_LN10"]),),
    "log1p": lambda y, a: (1 / (a + 1),),
    "sqrt": lambda y, a: (0.5 / y,),
    "rsqrt": lambda y, a: (-0.5 * (y * y * y),),
    "reciprocal": lambda y, a: (-(y * y),),
    "sin": lambda y, a: (make("cos", a),),
    "cos": lambda y, a: (-make("sin", a),),
    "tan": lambda y, a: (1 + _sq(y),),
    "asin": lambda y, a: (make("rsqrt", 1 - _sq(a)),),
    "acos": lambda y, a: (-make("rsqrt", 1 - _sq(a)),),
    "atan": lambda y, a: (1 / (_sq(a) + 1),),
    "sinh": lambda y, a: (make("cosh", a),),
    "cosh": lambda y, a: (make("sinh", a),),
    "tanh": lambda y, a: (1 - _sq(y),),
    "asinh": lambda y, a: (make("rsqrt", _sq(a) + 1),),
    "acosh": lambda y, a: (make("rsqrt", _sq(a) - 1),),
    "atanh": lambda y, a: (1 / (1 - _sq(a)),),
    "erf": lambda y, a: (CONSTANTS["M_2_SQRTPI"] * make("exp", -_sq(a)),),
    "erfc": lambda y, a: (-CONSTANTS["M_2_SQRTPI"] * make("exp", -_sq(a)),),
    "erfinv": lambda y, a: (1 / CONSTANTS["M_2_SQRTPI"] * make("exp", _sq(y)),),
    "sigmoid": lambda y, a: (y * (1 - y),),
    "lgamma": lambda y, a: (make("digamma", a),),
    "digamma": lambda y, a: (make("trigamma", a),),
    "trigamma": lambda y, a: (-2 * make("zeta", Number(3), a),),
    "erfcx": lambda y, a: (2 * a * y - CONSTANTS["M_2_SQRTPI"],),
    "frac": lambda y, a: (Number(1),),
    "minimum": _extremum("gt"),
    "maximum": _extremum("lt"),
    "fmin": _fextremum("le"),
    "fmax": _fextremum("ge"),
    "pow": _pow_rule,
    "atan2": _atan2,
    "hypot": lambda y, a, b: (a / y, b / y),
    "fmod": lambda y, a, b: (Number(1), -make("trunc", a / b)),
    "remainder": lambda y, a, b: (Number(1), -make("floor_divide", a, b)),
    "copysign": _copysign,
    "floor_divide": _zero,
    "trunc_divide": _zero,
    "floor": _zero,
    "ceil": _zero,
    "trunc": _zero,
    "round": _zero,
    "sign": _zero,
    "nextafter": lambda y, a, b: (Number(1), None),
    "frexp_exponent": _zero,
}

# On real numbers only: they have no complex derivative.
_REAL_RULES: Final[dict[str, _Rule]] = {
    "abs": lambda y, a: (make("sign", a),),
    "real": lambda y, a: (Number(1),),
    "conj": lambda y, a: (Number(1),),
    "imag": _zero,
    "angle": _zero,
}


def derive(x: Element, name: str, complex_values: bool = False) -> Element:
    """The derivative of x with respect to an operand or scalar.

    Args:
      complex_values: the operator also computes on complex numbers; functions that are not holomorphic are then refused.

    Raises:
      ExprError: for a function without a derivative in the language.
    """
    memo: dict[Element, Element] = {}

    def of(node: Element) -> Element:
        if node not in memo:
            memo[node] = visit(node)
        return memo[node]

    def visit(node: Element) -> Element:
        if isinstance(node, Name):
            return Number(1 if node.id == name else 0)
        if isinstance(node, Number) or node.kind == "mask":
            return Number(0)
        if isinstance(node, Cast):
            return of(node.arg)
        assert isinstance(node, Call)
        inner = [of(a) for a in node.args]
        if all(isinstance(d, Number) and d.value == 0 for d in inner):
            return Number(0)
        if node.fn == "where":
            return make("where", node.args[0], inner[1], inner[2])
        if node.fn == "mul":
            return inner[0] * node.args[1] + node.args[0] * inner[1]
        if node.fn == "div" and isinstance(inner[1], Number) and inner[1].value == 0:
            return inner[0] / node.args[1]
        rule = _RULES.get(node.fn)
        if rule is None and not complex_values:
            rule = _REAL_RULES.get(node.fn)
        if rule is None:
            reason = (
                "is not holomorphic"
                if node.fn in _REAL_RULES
                else "has no derivative in the language"
            )
            raise ExprError(
                f"d(expr): {node.fn} {reason}; write this gradient as a tensor expression, or none"
            )
        total: Element = Number(0)
        for outer, d in zip(rule(node, *node.args), inner, strict=False):
            if outer is not None:
                total = total + d * outer
        return total

    return of(x)
