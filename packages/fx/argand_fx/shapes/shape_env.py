"""`ShapeEnv`: the symbols of one graph, what is known of them, and the guards that decisions leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, floor, gcd, inf
from typing import Any

from argand_fx.shapes.sym_int import (
    Atom,
    Expr,
    Monomial,
    SymBool,
    SymInt,
    Terms,
    content,
    evaluate,
    expr_of,
)

__all__ = ["LateGuardError", "ShapeEnv", "ShapeGuard"]

Interval = tuple[float, float]


class LateGuardError(RuntimeError):
    """A decision on sizes that would need a guard, after the guards were taken."""


@dataclass(frozen=True, slots=True)
class ShapeGuard:
    """A fact that must hold for the graph to be right.

    Attributes:
        expr: nested tuples over symbols' names, as `("<=", ("+", ("*", 2, "s0"), 3), 10)`.
        location: `(file, line, function)` of the user's code that needed it, or None.
        is_range: whether it only says in which range a symbol was made.
    """

    expr: Expr
    location: tuple[str, int, str] | None = None
    is_range: bool = False


class ShapeEnv:
    """Makes symbols and decides comparisons of symbolic integers.

    A comparison is decided by the symbols' ranges and by earlier guards where those suffice; else as the example has
    it, which leaves a guard. After `freeze()` a new guard is an error.

    Attributes:
        atoms: symbols, quotients and remainders, by index.
        sources: where each symbol comes from, by name.
        hints: the example's values, by name.
        locate: tells the place that new guards note as their location.
        guards_copies: whether a size for which a copy could be a view needs a guard. Without, results that eager execution
            gives as views for some sizes (mostly 1) are copies for all.
    """

    guards_copies = True

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.sources: dict[str, Any] = {}
        self.hints: dict[str, int] = {}
        self.locate: Callable[[], tuple[str, int, str] | None] = lambda: None
        self.frozen = False
        # Tables of results; keys hold the operands themselves, which are interned.
        self.sums: dict[Any, Any] = {}
        self.differences: dict[Any, Any] = {}
        self.products: dict[Any, Any] = {}
        self._quotients: dict[Any, Any] = {}
        self._remainders: dict[Any, Any] = {}
        self._interned: dict[tuple[Terms, int], SymInt] = {}
        self._atom_of: dict[Any, SymInt] = {}
        self._guards: list[ShapeGuard] = []
        self._decided: dict[tuple[str, SymInt], bool] = {}
        self._facts: dict[Terms, Interval] = {}  # bounds of primitive forms that guards gave
        self._nonzero: set[SymInt] = set()
        self._bounds: dict[SymInt, Interval] = {}
        self._replaced: dict[int, Any] = {}  # symbol's index -> what it equals by a guard
        self._simplified: dict[SymInt, Any] = {}

    # Symbols ---------------------------------------------------------------------------------

    def create_symbol(
        self,
        hint: int,
        source: Any,
        positive: bool = True,
        *,
        low: int | None = None,
        high: int | None = None,
    ) -> Any:
        """A new symbol; the number itself for sizes 0 and 1, which are never symbolic.

        Args:
            hint: its value in the example.
            source: where it comes from; plain data for the caller.
            positive: it is a size: at least 2.
            low, high: bounds that it shall have instead, both included; they become guards.
        """
        if positive and 0 <= hint <= 1:
            return hint
        low = low if low is not None else (2 if positive else None)
        index = len(self.atoms)
        name = f"s{len(self.sources)}"
        atom = Atom(
            index,
            "symbol",
            name,
            (),
            hint,
            -inf if low is None else low,
            inf if high is None else high,
        )
        self.atoms.append(atom)
        self.sources[name] = source
        self.hints[name] = hint
        if low is not None:
            self._guards.append(ShapeGuard(("<=", low, name), self.locate(), True))
        if high is not None:
            self._guards.append(ShapeGuard(("<=", name, high), self.locate(), True))
        return self.intern((((index,), 1),), 0)

    @property
    def guards(self) -> list[ShapeGuard]:
        """What must hold, the symbols' ranges first and then in the order of the decisions."""
        return sorted(self._guards, key=lambda g: not g.is_range)

    def freeze(self) -> None:
        """Let no more guards be added."""
        self.frozen = True

    @staticmethod
    def evaluate(expr: Any, bindings: Mapping[str, int]) -> Any:
        """The value of an expression or a guard's `expr` with these values of the symbols."""
        return evaluate(expr.expr if isinstance(expr, (SymInt, SymBool)) else expr, bindings)

    def check_guards(self, bindings: Mapping[str, int]) -> ShapeGuard | None:
        """The first guard that does not hold for these values; None: all do."""
        for guard in self.guards:
            if not evaluate(guard.expr, bindings):
                return guard
        return None

    # Making values -----------------------------------------------------------------------------

    def intern(self, terms: Terms, const: int) -> SymInt:
        """The one object of this value; `terms` must not be empty."""
        key = (terms, const)
        found = self._interned.get(key)
        if found is None:
            atoms = self.atoms
            hint = const
            for monomial, c in terms:
                for i in monomial:
                    c *= atoms[i].hint
                hint += c
            found = self._interned[key] = SymInt(self, terms, const, hint)
        return found

    def make(self, terms: Mapping[Monomial, int], const: int) -> Any:
        """A value from unsorted terms without zeros; an int where there are none."""
        if not terms:
            return const
        return self.intern(
            tuple(sorted(terms.items())) if len(terms) > 1 else tuple(terms.items()), const
        )

    def _atom(self, op: str, a: Any, b: Any) -> SymInt:
        key = (op, a, b)
        found = self._atom_of.get(key)
        if found is None:
            left, right = hint_of(a), hint_of(b)
            low, high = self._range_of(op, a, b)
            index = len(self.atoms)
            hint = left // right if op == "//" else left % right
            self.atoms.append(Atom(index, op, "", (a, b), hint, low, high))
            found = self._atom_of[key] = self.intern((((index,), 1),), 0)
        return found

    def _range_of(self, op: str, a: Any, b: Any) -> Interval:
        (la, ha), (lb, hb) = self.bounds(a), self.bounds(b)
        if lb < 1:
            return -inf, inf
        if op == "%":
            return 0, min(ha, hb - 1) if la >= 0 else hb - 1
        low = (0 if hb == inf else la // hb) if la >= 0 else (la // lb if la > -inf else -inf)
        high = (ha // lb if ha < inf else inf) if ha >= 0 else (ha // hb if hb < inf else -1)
        return low, high

    # Division ----------------------------------------------------------------------------------

    def floor_divide(self, a: Any, b: Any) -> Any:
        """a // b, rounded down; exact where b divides a."""
        key = (a, b)
        try:
            return self._quotients[key]
        except KeyError:
            result = self._quotients[key] = self._floor_divide(a, b)
            return result

    def _floor_divide(self, a: Any, b: Any) -> Any:
        if isinstance(b, int):
            if b == 0:
                raise ZeroDivisionError("integer division or modulo by zero")
            if b < 0:
                return self.floor_divide(-a, -b) if isinstance(a, SymInt) else a // b
            if not isinstance(a, SymInt):
                return a // b
            whole, rest = self._split(a, b)
            if isinstance(rest, int):
                return whole + rest // b
            low, high = self.bounds(rest)
            if low > -inf and high < inf and low // b == high // b:
                return whole + int(low // b)
            g = gcd(content(rest.terms), b)
            inner = self.make({m: c // g for m, c in rest.terms}, rest.const // g)
            return whole + (inner if b == g else self._atom("//", inner, b // g))
        self._need_divisor(b)
        exact = self._exact_quotient(a, b)
        if exact is not None:
            return exact
        if (
            self.known("<=", -b if isinstance(b, SymInt) else -b)
            and _true(self, a)
            and self.known_less(a, b)
        ):
            return 0
        near = self._near_quotient(a, b)
        return self._atom("//", a, b) if near is None else near

    def _near_quotient(self, a: Any, b: SymInt) -> Any:
        """The number q for which a lies between q * b and (q + 1) * b by what is known, as of (3 * n - 1) // n; None: there is none."""
        if not isinstance(a, SymInt):
            return None
        lead, lead_c = max(b.terms, key=lambda t: (len(t[0]), t[0]))
        most = dict(a.terms).get(lead, 0) // lead_c
        for q in (most, most - 1):
            rest = a - b * q
            if _true(self, rest) and self.known_less(rest, b):
                return q
        return None

    def remainder(self, a: Any, b: Any) -> Any:
        """a % b with the sign of b, as in Python."""
        key = (a, b)
        try:
            return self._remainders[key]
        except KeyError:
            result = self._remainders[key] = self._remainder(a, b)
            return result

    def _remainder(self, a: Any, b: Any) -> Any:
        if isinstance(b, int):
            if b == 0:
                raise ZeroDivisionError("integer division or modulo by zero")
            if not isinstance(a, SymInt):
                return a % b
            _, rest = self._split(a, abs(b))
            if isinstance(rest, int):
                return rest % b
            low, high = self.bounds(rest)
            if b > 0 and low >= 0 and high < b:
                return rest
            return self._atom("%", rest, b)
        self._need_divisor(b)
        if self._exact_quotient(a, b) is not None:
            return 0
        if _true(self, a) and self.known_less(a, b):
            return a
        return self._atom("%", a, b)

    def _need_divisor(self, b: SymInt) -> None:
        """Division by 0 is an error in the example, and elsewhere a guard that fails."""
        if b.hint == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        self.decide("!=", b)

    def _split(self, a: SymInt, b: int) -> tuple[Any, Any]:
        """(q, r) with a == q * b + r and all that b divides in q; 0 <= r's constant < b."""
        whole: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for m, c in a.terms:
            q, r = divmod(c, b)
            if r == 0:
                whole[m] = q
            else:
                rest[m] = c
        q, r = divmod(a.const, b)
        return self.make(whole, q), self.make(rest, r)

    def _exact_quotient(self, a: Any, b: SymInt) -> Any:
        """a / b where it is a polynomial, else None."""
        if not isinstance(a, SymInt):
            return 0 if a == 0 else None
        a, b = self.simplify(a), self.simplify(b)
        if not isinstance(a, SymInt) or not isinstance(b, SymInt):
            if isinstance(a, int) and isinstance(b, int):
                return a // b if b and a % b == 0 else None
            if isinstance(b, int) and b:
                whole, rest = self._split(a, b)
                return whole if isinstance(rest, int) and rest == 0 else None
            return None
        lead, lead_c = max(b.terms, key=lambda t: (len(t[0]), t[0]))
        quotient: Any = 0
        for _ in range(32):
            top, c = max(a.terms, key=lambda t: (len(t[0]), t[0]))
            left = _divided(top, lead)
            if left is None or c % lead_c:
                return None
            part = self.make({left: c // lead_c}, 0) if left else c // lead_c
            quotient = quotient + part
            a = a - b * part
            if isinstance(a, int):
                return quotient if a == 0 else None
        return None

    # What is known -----------------------------------------------------------------------------

    def bounds(self, value: Any) -> Interval:
        """Between which numbers the value lies, by what is known."""
        if not isinstance(value, SymInt):
            return value, value
        found = self._bounds.get(value)
        if found is None:
            found = self._bounds[value] = self._compute_bounds(value)
        return found

    def _compute_bounds(self, value: SymInt) -> Interval:
        low: float = value.const
        high: float = value.const
        for monomial, c in value.terms:
            a, b = self._monomial_bounds(monomial)
            low += c * a if c > 0 else c * b
            high += c * b if c > 0 else c * a
        if len(value.terms) > 1:
            a, b = self._factored_bounds(value.terms)
            low, high = _meet((low, high), (a + value.const, b + value.const))
        fact = self._fact_of(value.terms)
        if fact:
            low, high = _meet((low, high), (fact[0] + value.const, fact[1] + value.const))
        if low <= 0 < high and len(value.terms) > 1:  # its sign is open
            for monomial, c in value.terms:
                atom = self.atoms[monomial[0]]
                if len(monomial) == 1 and atom.op == "//" and isinstance(atom.args[1], int):
                    low, high = _meet((low, high), self._bounds_of_quotient(value, monomial, c))
        return low, high

    def _bounds_of_quotient(self, value: SymInt, monomial: Monomial, c: int) -> Interval:
        """Bounds of value = rest + c * (a // k), from a - (k - 1) <= k * (a // k) <= a."""
        a, k = self.atoms[monomial[0]].args
        rest = self.make({m: n for m, n in value.terms if m != monomial}, value.const)
        ends = [self.bounds(k * rest + c * a), self.bounds(k * rest + c * (a - k + 1))]
        (low, _), (_, high) = (ends[1], ends[0]) if c > 0 else (ends[0], ends[1])
        return low / k, high / k

    def _monomial_bounds(self, monomial: Monomial) -> Interval:
        low, high = self._atom_bounds(monomial[0])
        for i in monomial[1:]:
            low, high = _product((low, high), self._atom_bounds(i))
        return low, high

    def _atom_bounds(self, i: int) -> Interval:
        atom = self.atoms[i]
        fact = self._facts.get((((i,), 1),))
        return _meet((atom.low, atom.high), fact) if fact else (atom.low, atom.high)

    def _factored_bounds(self, sum_of: Terms) -> Interval:
        """Bounds of a product of a common factor and the rest: s0*s1 - s1 is s1 * (s0 - 1)."""
        common = _common_factor(sum_of)
        if not common:
            return -inf, inf
        return _product(self._monomial_bounds(common), self.bounds(self._over(sum_of, common)))

    def _over(self, sum_of: Terms, factor: Monomial) -> Any:
        """The sum divided by a factor of all its terms."""
        terms = {_divided(monomial, factor): c for monomial, c in sum_of}
        const = terms.pop((), 0)
        return self.make(terms, const)  # type: ignore[arg-type]

    def _without_factor(self, difference: Any) -> Any:
        """What compares with 0 in the same way: without factors that are certainly positive."""
        if isinstance(difference, SymInt) and difference.const == 0 and len(difference.terms) > 1:
            common = tuple(
                i for i in _common_factor(difference.terms) if self._atom_bounds(i)[0] >= 1
            )
            if common:
                return self._over(difference.terms, common)
        return difference

    def _fact_of(self, terms: Terms) -> Interval | None:
        """Bounds of a form without constant, from the guards."""
        form, scale = _primitive(terms)
        fact = self._facts.get(form)
        if fact is None:
            return None
        a, b = fact[0] * scale, fact[1] * scale
        return (a, b) if scale > 0 else (b, a)

    def known(self, op: str, difference: Any) -> bool | None:
        """Whether `difference op 0` holds by what is known; None: it is open."""
        if not isinstance(difference, SymInt):
            return bool(difference <= 0 if op == "<=" else (difference == 0) == (op == "=="))
        low, high = self.bounds(difference)
        if op == "<=":
            return True if high <= 0 else False if low > 0 else None
        equal: bool | None = None
        if low > 0 or high < 0 or difference.const % content(difference.terms):
            equal = False
        elif low == high == 0:
            equal = True
        elif difference in self._nonzero or (-difference) in self._nonzero:
            equal = False
        return equal if equal is None or op == "==" else not equal

    def known_less(self, a: Any, b: Any) -> bool:
        """Whether a < b certainly."""
        return self.known("<=", a - b + 1) is True

    # Decisions ---------------------------------------------------------------------------------

    def compare(self, op: str, difference: Any) -> Any:
        """`difference op 0`: a bool where it is known, else a `SymBool`."""
        found = self.known(op, difference)
        if found is None and self._replaced:
            found = self.known(op, self.simplify(difference))
        return SymBool(op, difference) if found is None else found

    def decide(self, op: str, difference: Any) -> bool:
        """Decide `difference op 0` as in the example; leaves a guard unless it is known."""
        difference = self._without_factor(self.simplify(difference))
        found = self.known(op, difference)
        if found is not None:
            return found
        done = self._decided.get((op, difference))
        if done is not None:
            return done
        hint: int = difference.hint
        value = hint <= 0 if op == "<=" else (hint == 0) == (op == "==")
        self._add_guard(
            op if value else _NEGATED.get(op, op),
            difference if value or op != "<=" else 1 - difference,
        )
        self._decided[op, difference] = value
        return value

    def _add_guard(self, op: str, difference: Any) -> None:
        """Record that `difference op 0` must hold, and learn from it."""
        expr = self.comparison_expr(op, difference)
        if self.frozen:
            raise LateGuardError(
                f"ShapeEnv: got the new guard {expr} after the guards were taken; decide it before freeze()"
            )
        self._guards.append(ShapeGuard(expr, self.locate()))
        if op == "!=":
            self._nonzero.add(difference)
            return
        form, scale = _primitive(difference.terms)
        # scale * form + const <= 0 (or == 0)
        bound = -difference.const
        low, high = self._facts.get(form, (-inf, inf))
        if op == "==" or scale > 0:
            high = min(high, bound // scale)
        if op == "==" or scale < 0:
            low = max(low, -(bound // -scale))
        self._facts[form] = (low, high)
        self._bounds.clear()
        if low == high:
            self._solve(self.make(dict(form), -int(low)))
            self._learn_divisor(form, int(low))
            self._learn_terms(form, int(low))

    def _solve(self, zero: Any) -> None:
        """Use that `zero` is 0: the newest symbol that it can be solved for is replaced by what it equals."""
        for monomial, c in reversed(zero.terms):
            if len(monomial) != 1 or abs(c) != 1 or self.atoms[monomial[0]].op != "symbol":
                continue
            index = monomial[0]
            symbol = self.intern(((monomial, 1),), 0)
            value = symbol - zero if c == 1 else symbol + zero
            if isinstance(value, SymInt) and self.atoms[index].name in value.symbols():
                continue
            self._replaced = {
                i: self._substitute(v, {index: value}) for i, v in self._replaced.items()
            }
            self._replaced[index] = value
            self._simplified.clear()
            facts, self._facts = self._facts, {}
            for form, (low, high) in facts.items():
                self._keep_fact(self._substitute(self.intern(form, 0), {index: value}), low, high)
                self._facts[form] = (low, high)
            self._bounds.clear()
            return

    def _learn_divisor(self, form: Terms, value: int) -> None:
        """a % b == 0 says that (a // b) * b is a."""
        atom = self.atoms[form[0][0][0]]
        if value == 0 and len(form) == 1 and len(form[0][0]) == 1 and atom.op == "%":
            a, b = atom.args
            self._keep_fact(a - (a // b) * b, 0, 0)

    def _learn_terms(self, form: Terms, value: int) -> None:
        """What a sum's value says of each of its terms."""
        for monomial, c in form if len(form) <= 3 else ():
            low, high = self.bounds(value - self.make({m: k for m, k in form if m != monomial}, 0))
            self._keep_fact(self.intern(((monomial, c),), 0), low, high)
        self._bounds.clear()

    def _keep_fact(self, value: Any, low: float, high: float) -> None:
        if isinstance(value, SymInt):
            form, scale = _primitive(value.terms)
            a, b = low - value.const, high - value.const
            if scale < 0:
                a, b = b, a
            low, high = _quotient(a, scale, ceil), _quotient(b, scale, floor)
            self._facts[form] = _meet(self._facts.get(form, (-inf, inf)), (low, high))

    @property
    def has_replacements(self) -> bool:
        """Whether guards made symbols equal to others or to numbers."""
        return bool(self._replaced)

    def simplify(self, value: Any) -> Any:
        """The value with symbols replaced that guards made equal to others."""
        if not self._replaced or not isinstance(value, SymInt):
            return value
        found = self._simplified.get(value)
        if found is None:
            found = self._simplified[value] = self._substitute(value, self._replaced)
        return found

    def _substitute(self, value: Any, by: Mapping[int, Any]) -> Any:
        if not isinstance(value, SymInt):
            return value
        total: Any = value.const
        for monomial, c in value.terms:
            term: Any = c
            for i in monomial:
                atom = self.atoms[i]
                if i in by:
                    term = by[i] * term
                elif atom.op == "symbol":
                    term = self.intern((((i,), 1),), 0) * term
                else:
                    a, b = (self._substitute(x, by) for x in atom.args)
                    term = (a // b if atom.op == "//" else a % b) * term
            total = term + total
        return total

    def specialize(self, value: Any) -> int:
        """The example's value, which a guard then demands."""
        if isinstance(value, int):
            return value
        hint: int = value.hint
        self.decide("==", value - hint)
        return hint

    def comparison_expr(self, op: str, difference: SymInt) -> Expr:
        """`difference op 0` with positive terms on both sides."""
        left = {m: c for m, c in difference.terms if c > 0}
        right = {m: -c for m, c in difference.terms if c < 0}
        const = difference.const
        a = self.make(left, const if const > 0 and left else 0)
        b = self.make(right, -const if const < 0 or not left else 0)
        if not left:  # 0 <= ...: the constant alone stands on the left
            a, b = (const, self.make(right, 0)) if const > 0 else (0, self.make(right, -const))
        return (op, expr_of(a), expr_of(b))


_NEGATED = {"==": "!=", "!=": "=="}


def hint_of(value: Any) -> int:
    """The example's value of a number."""
    return value.hint if isinstance(value, SymInt) else value


def _true(env: ShapeEnv, a: Any) -> bool:
    """Whether a >= 0 certainly."""
    return env.known("<=", -a) is True


def _divided(monomial: Monomial, by: Monomial) -> Monomial | None:
    """The quotient of two monomials, if it is one."""
    rest = list(monomial)
    for i in by:
        if i not in rest:
            return None
        rest.remove(i)
    return tuple(rest)


def _common_factor(sum_of: Terms) -> Monomial:
    """The atoms that divide every term."""
    common = list(sum_of[0][0])
    for monomial, _ in sum_of[1:]:
        rest = list(monomial)
        kept = []
        for i in common:
            if i in rest:
                rest.remove(i)
                kept.append(i)
        common = kept
    return tuple(common)


def _primitive(terms: Terms) -> tuple[Terms, int]:
    """The form with coprime coefficients, the first positive, and the factor that gives `terms` back."""
    scale = content(terms) * (1 if terms[0][1] > 0 else -1)
    return (terms, 1) if scale == 1 else (tuple([(m, c // scale) for m, c in terms]), scale)


def _meet(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), min(a[1], b[1])


def _quotient(a: float, b: int, rounded: Callable[[float], int]) -> float:
    """a / b rounded; exact also for large numbers."""
    if a in (inf, -inf):
        return a if b > 0 else -a
    return int(a) // b if rounded is floor else -(-int(a) // b)


def _times(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b


def _product(a: Interval, b: Interval) -> Interval:
    corners = [_times(x, y) for x in a for y in b]
    return min(corners), max(corners)
