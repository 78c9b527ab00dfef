"""Exact arithmetic on sizes: integer polynomials over a program's symbols.

`Size` is an int or a `Poly`. Equality is structural and never asks whether two symbols happen to be equal, so that no guard comes
of it. What is no polynomial (`//`, `%`, `min`...) is an atom, known by its text.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

# A product of atoms, sorted; () is 1.
Monomial = tuple[str, ...]


class Poly:
    """A polynomial that is no plain integer. Immutable; `terms` maps monomials to nonzero coefficients."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = dict(sorted(terms.items(), key=lambda t: (-len(t[0]), t[0])))
        self._hash = hash(tuple(self.terms.items()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.terms == other.terms

    def __add__(self, other: Size) -> Size:
        terms = dict(self.terms)
        for m, c in _terms(other).items():
            terms[m] = terms.get(m, 0) + c
        return _poly(terms)

    def __mul__(self, other: Size) -> Size:
        terms: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in _terms(other).items():
                key = tuple(sorted(m + n))
                terms[key] = terms.get(key, 0) + c * d
        return _poly(terms)

    def __sub__(self, other: Size) -> Size:
        return self + other * -1

    def __rsub__(self, other: Size) -> Size:
        return self * -1 + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __repr__(self) -> str:
        return str(text(self))


Size = int | Poly


def _terms(x: Size) -> Mapping[Monomial, int]:
    return x.terms if isinstance(x, Poly) else {(): x}


def _poly(terms: Mapping[Monomial, int]) -> Size:
    kept = {m: c for m, c in terms.items() if c}
    if all(m == () for m in kept):
        return kept.get((), 0)
    return Poly(kept)


def atom(name: str) -> Size:
    return Poly({(name,): 1})


def product(sizes: Iterable[Size]) -> Size:
    return reduce(operator.mul, sizes, 1)


def text(x: Size) -> int | str:
    """The program's form of an expression (program.py)."""
    if isinstance(x, int):
        return x
    parts: list[str] = []
    for m, c in x.terms.items():
        factors = [a if a.isidentifier() or a.startswith("(") else f"({a})" for a in m]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        sign = "-" if c < 0 else "+"
        parts.append(f"{sign} {' * '.join(factors)}")
    joined = " ".join(parts)
    return joined[2:] if joined.startswith("+ ") else "-" + joined[2:]


def of(value: Any) -> Size:
    """From an int, a symbolic integer or its text."""
    if type(value) is int or isinstance(value, Poly):
        return value
    if isinstance(value, bool):
        return int(value)
    return _parse(str(value))


@functools.lru_cache(maxsize=4096)
def _parse(source: str) -> Size:
    return _read(ast.parse(source, mode="eval").body)


def _read(node: ast.expr) -> Size:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return int(node.value)
    if isinstance(node, ast.Name):
        return atom(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _read(node.operand) * -1
    if isinstance(node, ast.BinOp):
        left, right = _read(node.left), _read(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv):
            exact = divide(left, right)
            return exact if exact is not None else floor_divide(left, right)
        if isinstance(node.op, ast.Mod) and divide(left, right) is not None:
            return 0
        if isinstance(left, int) and isinstance(right, int) and isinstance(node.op, ast.Mod):
            return left % right
        if isinstance(node.op, ast.Mod):
            return atom(f"({_wrapped(left)} % {_wrapped(right)})")
    return atom(f"({ast.unparse(node)})")


def _wrapped(x: Size) -> str:
    t = str(text(x))
    return t if t.isidentifier() or t.isdigit() else f"({t})"


def floor_divide(a: Size, b: Size) -> Size:
    """a // b, whole or not."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    return atom(f"({_wrapped(a)} // {_wrapped(b)})")


def ceil_divide(a: Size, b: int) -> Size:
    if isinstance(a, int):
        return -(-a // b)
    return divide(a, b) or floor_divide(a + (b - 1), b)


def divide(a: Size, b: Size) -> Size | None:
    """The quotient where it is whole for every value of the symbols, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    if a == 0:
        return 0
    if a == b:
        return 1
    divisor = _terms(b)
    if len(divisor) != 1:
        return _divide_long(a, b)
    (m, c), *_ = divisor.items()
    terms: dict[Monomial, int] = {}
    for n, d in _terms(a).items():
        left = list(n)
        for name in m:
            if name not in left:
                return None
            left.remove(name)
        if d % c:
            return None
        terms[tuple(left)] = d // c
    return _poly(terms)


def _divide_long(a: Size, b: Size) -> Size | None:
    """Division by a sum: leading terms one after the other."""
    (lead, coefficient), *_ = _terms(b).items()
    quotient: Size = 0
    rest = a
    for _ in range(16):
        if rest == 0:
            return quotient
        (m, c), *_ = _terms(rest).items()
        step = divide(_poly({m: c}), _poly({lead: coefficient}))
        if step is None:
            return None
        quotient = quotient + step
        rest = rest - step * b
    return None


def symbol(x: Poly) -> str | None:
    """The symbol's name if that is all of x."""
    (m, c), *rest = x.terms.items()
    return m[0] if c == 1 and len(m) == 1 and not rest and m[0].isidentifier() else None


def is_positive(x: Size) -> bool:
    """Whether the value is above 0 for all values of the symbols, which are sizes of at least 2."""
    if isinstance(x, int):
        return x > 0
    return all(c > 0 and all(a.isidentifier() for a in m) for m, c in x.terms.items())


def atoms(x: Size) -> set[str]:
    return {a for m in _terms(x) for a in m}


def evaluate(x: Size, values: Mapping[str, int]) -> int:
    """The value for given symbols."""
    if isinstance(x, int):
        return x
    total = 0
    for m, c in x.terms.items():
        for a in m:
            c *= (
                values[a]
                if a in values
                else int(eval(a, {"__builtins__": {}, "min": min, "max": max}, dict(values)))
            )
        total += c
    return total
