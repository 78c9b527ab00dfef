"""Symbolic integers: interned polynomials over symbols, floor quotients and remainders.

Sums and multiples of symbols are table look-ups after their first use. What is not a polynomial (`//`, `%` that do not
divide) becomes an atom of its own, so that it can again be added and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd
from typing import TYPE_CHECKING, Any

from argand_fx.symbolic import SymbolicValue

if TYPE_CHECKING:
    from argand_fx.shapes.shape_env import ShapeEnv

__all__ = ["Atom", "SymBool", "SymInt", "evaluate"]

Monomial = tuple[int, ...]  # sorted indices of the environment's atoms; repeated for powers
Terms = tuple[tuple[Monomial, int], ...]  # sorted by monomial, coefficients not 0
Expr = Any  # an int, a symbol's name, or a tuple of an operation and its operands


class Atom:
    """What polynomials are made of: a symbol, or the floor quotient or remainder of two values.

    Attributes:
        index: its number in the environment.
        op: "symbol", "//" or "%".
        name: of a symbol.
        args: the two values of the other operations.
        hint: its value in the example that is traced.
        low, high: bounds that always hold; infinite where there are none.
    """

    __slots__ = ("args", "hint", "high", "index", "low", "name", "op")

    def __init__(
        self,
        index: int,
        op: str,
        name: str,
        args: tuple[Any, ...],
        hint: int,
        low: float,
        high: float,
    ) -> None:
        self.index = index
        self.op = op
        self.name = name
        self.args = args
        self.hint = hint
        self.low = low
        self.high = high

    def expr(self) -> Expr:
        return self.name if self.op == "symbol" else (self.op, *map(expr_of, self.args))

    def text(self) -> str:
        if self.op == "symbol":
            return self.name
        a, b = (str(x) if isinstance(x, int) or x.is_symbol else f"({x})" for x in self.args)
        return f"({a}{self.op}{b})"


def expr_of(value: Any) -> Expr:
    """The plain data of a number."""
    return value.expr if isinstance(value, SymInt) else value


class SymInt(SymbolicValue):
    """An integer known only when the graph runs; `hint` is its value in the example.

    The same value in the same environment is the same object. Arithmetic stays symbolic. Comparisons give a bool where
    the symbols' ranges decide them, else a `SymBool`. `int(x)` makes the program special for this value: a guard.
    """

    __slots__ = ("_text", "const", "env", "hint", "terms")

    def __init__(self, env: ShapeEnv, terms: Terms, const: int, hint: int) -> None:
        self.env = env
        self.terms = terms
        self.const = const
        self.hint = hint
        self._text: str | None = None

    __hash__ = object.__hash__

    # Looking ---------------------------------------------------------------------------------

    @property
    def is_symbol(self) -> bool:
        """Whether it is a symbol alone."""
        return (
            self.const == 0
            and len(self.terms) == 1
            and self.terms[0][1] == 1
            and len(self.terms[0][0]) == 1
            and self.env.atoms[self.terms[0][0][0]].op == "symbol"
        )

    @property
    def expr(self) -> Expr:
        """Nested tuples over symbols' names, as `("+", ("*", 2, "s0"), 3)`; `evaluate` computes them."""
        atoms = self.env.atoms
        parts: list[Expr] = []
        for monomial, c in self.terms:
            factors: list[Expr] = [atoms[i].expr() for i in monomial]
            if c != 1:
                factors.insert(0, c)
            parts.append(factors[0] if len(factors) == 1 else ("*", *factors))
        if self.const:
            parts.append(self.const)
        return parts[0] if len(parts) == 1 else ("+", *parts)

    def symbols(self) -> list[str]:
        """The names of the symbols in it, in the order of their making."""
        found: set[int] = set()
        _collect(self, found)
        return [self.env.atoms[i].name for i in sorted(found)]

    def __str__(self) -> str:
        if self._text is None:
            self._text = self._make_text()
        return self._text

    __repr__ = __str__

    def _make_text(self) -> str:
        atoms = self.env.atoms
        text = ""
        for monomial, c in self.terms:
            product = "*".join(atoms[i].text() for i in monomial)
            size = abs(c)
            term = product if size == 1 else f"{size}*{product}"
            if not text:
                text = term if c > 0 else f"-{term}"
            else:
                text += f" + {term}" if c > 0 else f" - {term}"
        if self.const:
            text += f" + {self.const}" if self.const > 0 else f" - {-self.const}"
        return text[1:-1] if text.startswith("(") and _one_group(text) else text

    def __reduce__(self) -> Any:
        raise TypeError("SymInt: cannot be pickled; keep its `expr`")

    def __deepcopy__(self, memo: Any) -> SymInt:
        return self

    def __copy__(self) -> SymInt:
        return self

    # Numbers ---------------------------------------------------------------------------------

    def __int__(self) -> int:
        return self.env.specialize(self)

    __index__ = __int__
    __trunc__ = __int__

    def __float__(self) -> float:
        return float(self.env.specialize(self))

    def __bool__(self) -> bool:
        return bool(self != 0)

    # Arithmetic ------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        try:
            found = self.env.sums[self, other]
        except (KeyError, TypeError):
            found = None
        if found is None or type(other) is float:  # 1.0 finds what is kept for 1
            return self._combine(other, self.env.sums, 1)
        return found

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        try:
            found = self.env.differences[self, other]
        except (KeyError, TypeError):
            found = None
        if found is None or type(other) is float:  # 1.0 finds what is kept for 1
            return self._combine(other, self.env.differences, -1)
        return found

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def _combine(self, other: Any, table: dict[Any, Any], sign: int) -> Any:
        """self + sign * other."""
        kind = type(other)
        if kind is SymInt:
            merged = dict(self.terms)
            for monomial, c in other.terms:
                c = merged.get(monomial, 0) + sign * c
                if c:
                    merged[monomial] = c
                else:
                    del merged[monomial]
            result = self.env.make(merged, self.const + sign * other.const)
        elif kind is int:
            result = self.env.intern(self.terms, self.const + sign * other) if other else self
        elif kind is bool:
            return self._combine(int(other), table, sign)
        elif kind is float:
            return float(self) + sign * other
        else:
            return NotImplemented
        table[self, other] = result
        return result

    def __mul__(self, other: Any) -> Any:
        env = self.env
        kind = type(other)
        try:
            found = env.products[self, other]
        except (KeyError, TypeError):
            found = None
        if found is not None and kind is not float:
            return found
        if kind is int:
            if other == 0:
                return 0
            terms = tuple([(m, c * other) for m, c in self.terms])
            result = env.intern(terms, self.const * other)
        elif kind is SymInt:
            merged: dict[Monomial, int] = {}
            for left, a in (*self.terms, *((((), self.const),) if self.const else ())):
                for right, b in (*other.terms, *((((), other.const),) if other.const else ())):
                    m = tuple(sorted(left + right)) if left and right else left + right
                    merged[m] = merged.get(m, 0) + a * b
            const = merged.pop((), 0)
            result = env.make({m: c for m, c in merged.items() if c}, const)
        elif kind is bool:
            return self * int(other)
        elif kind is float:
            return float(self) * other
        else:
            return NotImplemented
        env.products[self, other] = result
        return result

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> SymInt:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if type(other) is int and 0 <= other <= 8 and modulus is None:
            result: Any = 1
            for _ in range(other):
                result = self * result
            return result
        if isinstance(other, (int, float, SymInt)):
            return pow(int(self), int(other) if isinstance(other, SymInt) else other, modulus)
        return NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return pow(other, int(self)) if isinstance(other, (int, float)) else NotImplemented

    def __floordiv__(self, other: Any) -> Any:
        if type(other) is float:
            return float(self) // other
        return self.env.floor_divide(self, other) if _is_integer(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        if type(other) is float:
            return other // float(self)
        return self.env.floor_divide(other, self) if _is_integer(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        if type(other) is float:
            return float(self) % other
        return self.env.remainder(self, other) if _is_integer(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        if type(other) is float:
            return other % float(self)
        return self.env.remainder(other, self) if _is_integer(other) else NotImplemented

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        if not isinstance(other, (int, float, SymInt)):
            return NotImplemented
        return int(self) / (int(other) if isinstance(other, SymInt) else other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / int(self) if isinstance(other, (int, float)) else NotImplemented

    # Comparisons -----------------------------------------------------------------------------

    def __eq__(self, other: Any) -> Any:
        if self is other:
            return True
        if not _is_integer(other):
            return float(self) == other if type(other) is float else NotImplemented
        return self.env.compare("==", self - other)

    def __ne__(self, other: Any) -> Any:
        if self is other:
            return False
        if not _is_integer(other):
            return float(self) != other if type(other) is float else NotImplemented
        return self.env.compare("!=", self - other)

    def __le__(self, other: Any) -> Any:
        if not _is_integer(other):
            return float(self) <= other if type(other) is float else NotImplemented
        return self.env.compare("<=", self - other)

    def __lt__(self, other: Any) -> Any:
        if not _is_integer(other):
            return float(self) < other if type(other) is float else NotImplemented
        return self.env.compare("<=", self - other + 1)

    def __ge__(self, other: Any) -> Any:
        if not _is_integer(other):
            return float(self) >= other if type(other) is float else NotImplemented
        return self.env.compare("<=", -self + other)

    def __gt__(self, other: Any) -> Any:
        if not _is_integer(other):
            return float(self) > other if type(other) is float else NotImplemented
        return self.env.compare("<=", -self + other + 1)


def _specializing(name: str) -> Callable[[SymInt, Any], Any]:
    def apply(self: SymInt, other: Any) -> Any:
        if not isinstance(other, (int, SymInt)):
            return NotImplemented
        return getattr(int(self), name)(int(other))

    return apply


for _name in "and or xor lshift rshift".split():
    setattr(SymInt, f"__{_name}__", _specializing(f"__{_name}__"))
    setattr(SymInt, f"__r{_name}__", _specializing(f"__r{_name}__"))


def _is_integer(x: Any) -> bool:
    return type(x) is int or type(x) is SymInt or isinstance(x, int)


def _one_group(text: str) -> bool:
    """Does the parenthesis that opens the text close at its end?"""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


def _collect(value: Any, found: set[int]) -> None:
    if not isinstance(value, SymInt):
        return
    for monomial, _ in value.terms:
        for i in monomial:
            atom = value.env.atoms[i]
            if atom.op == "symbol":
                found.add(i)
            for x in atom.args:
                _collect(x, found)


class SymBool(SymbolicValue):
    """A comparison of symbolic integers that their ranges do not decide.

    `bool(x)` decides it as in the example, and leaves a guard. Held as `difference op 0` with op "==", "!=" or "<=".
    """

    __slots__ = ("difference", "op")

    def __init__(self, op: str, difference: SymInt) -> None:
        self.op = op
        self.difference = difference

    @property
    def env(self) -> ShapeEnv:
        return self.difference.env

    @property
    def hint(self) -> bool:
        """What it is in the example."""
        return _HOLDS[self.op](self.difference.hint)

    @property
    def expr(self) -> Expr:
        """Nested tuples, as `("<=", "s0", 1024)`."""
        return self.env.comparison_expr(self.op, self.difference)

    def __bool__(self) -> bool:
        return self.env.decide(self.op, self.difference)

    def of_example(self) -> bool:
        """As in the example, where only a view or a copy is at stake; leaves a guard if the environment guards copies."""
        return bool(self) if self.env.guards_copies else self.hint

    def __invert__(self) -> Any:
        if self.op == "<=":
            return self.env.compare("<=", 1 - self.difference)
        return SymBool("!=" if self.op == "==" else "==", self.difference)

    def __and__(self, other: Any) -> bool:
        return bool(self) & bool(other)

    def __or__(self, other: Any) -> bool:
        return bool(self) | bool(other)

    def __xor__(self, other: Any) -> bool:
        return bool(self) ^ bool(other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __eq__(self, other: Any) -> Any:
        return bool(self) == bool(other) if isinstance(other, (bool, SymBool)) else NotImplemented

    __hash__ = object.__hash__

    def __str__(self) -> str:
        op, a, b = self.expr
        return f"{_text_of(a)} {op} {_text_of(b)}"

    __repr__ = __str__


_HOLDS: dict[str, Callable[[int], bool]] = {
    "==": lambda d: d == 0,
    "!=": lambda d: d != 0,
    "<=": lambda d: d <= 0,
}


def _text_of(expr: Expr) -> str:
    """An expression as Python."""
    if not isinstance(expr, tuple):
        return str(expr)
    parts = [f"({t})" if isinstance(x, tuple) else t for x in expr[1:] for t in [_text_of(x)]]
    return f" {expr[0]} ".join(parts)


def evaluate(expr: Expr, bindings: Mapping[str, int]) -> Any:
    """The value of nested tuples, with these values of the symbols.

    Args:
        expr: an int, a symbol's name, or `(op, a, b, ...)` with op one of `+ * // % == != <= <`.
        bindings: values by name.

    Raises:
        KeyError: if a symbol is not bound.
    """
    if isinstance(expr, int):
        return expr
    if isinstance(expr, str):
        return bindings[expr]
    op = expr[0]
    values = [evaluate(x, bindings) for x in expr[1:]]
    if op == "+":
        return sum(values)
    if op == "*":
        product = 1
        for v in values:
            product *= v
        return product
    return _BINARY[op](*values)


_BINARY: dict[str, Callable[[int, int], Any]] = {
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b,
}


def content(terms: Terms) -> int:
    """The greatest common divisor of the coefficients."""
    g = 0
    for _, c in terms:
        g = gcd(g, c)
    return g
