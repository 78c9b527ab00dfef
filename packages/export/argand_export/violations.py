"""What is said of guards that do not hold for all sizes which a user allows: the user's line and the fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argand_export.dims import DerivedDim, Dim, Relation
from argand_export.roots import Root, as_multiple, least_value, linear, symbols_of
from argand_fx.shapes import ShapeEnv, ShapeGuard
from argand_fx.shapes.sym_int import SymBool, evaluate

__all__ = ["describe"]


def describe(
    guards: Sequence[ShapeGuard], symbols: Mapping[str, Relation], roots: Mapping[str, Root]
) -> str:
    """One text of violated guards: the first about each dimension, since others may hold once that one is mended."""
    found: list[str] = []
    settled: set[str] = set()
    for guard in guards:
        used = {symbols[n].name for n in symbols_of(guard.expr) if n in symbols}
        if not used & settled:
            settled |= used
            found.append(_describe_one(guard, symbols, roots))
    return "export: " + "\n".join(found)


def _describe_one(
    guard: ShapeGuard, symbols: Mapping[str, Relation], roots: Mapping[str, Root]
) -> str:
    used = dict.fromkeys(symbols[n].name for n in symbols_of(guard.expr) if n in symbols)
    ranges = ", ".join(f"{roots[n].text} in {roots[n].range}" for n in used)
    where = ""
    if guard.location is not None:
        file, line, function = guard.location
        where = f"\n  at {file}:{line}, in {function}"
    needed, fix = _text(guard.expr, symbols, roots), _fix(guard.expr, symbols, roots)
    return f"the program needs {needed}, which does not hold for all sizes ({ranges}){where}\n  fix: {fix}"


def _fix(expr: Any, symbols: Mapping[str, Relation], roots: Mapping[str, Root]) -> str:
    used = list(dict.fromkeys(symbols[n].name for n in symbols_of(expr) if n in symbols))
    fact = _of_roots(expr, symbols, roots)
    terms = linear(fact) if isinstance(fact, SymBool) else None
    if len(used) == 1:
        root = roots[used[0]]
        if terms is not None and (bounds := _bounds(root, fact, terms[0][1])) is not None:
            return f"use {_with_bounds(root, *bounds)} in place of {root.given}"
        low = least_value(expr, symbols, roots, root)
        if low is not None:
            return f"use {_with_bounds(root, low, root.high)} in place of {root.given}"
        multiple = as_multiple(expr, symbols, roots, root)
        if multiple is not None and root.kind == "named":
            new = DerivedDim(Dim(f"_{root.name}"), multiple.factor, multiple.offset)
            rest = f" {'+' if new.offset > 0 else '-'} {abs(new.offset)}" if new.offset else ""
            return f"say so: use {new.factor}*Dim({new.root.name!r}){rest} in place of {root.given}"
        if expr[0] == "==":
            return f"fix the size: use {root.value} or Dim.STATIC in place of {root.given}, or write the program without a case for that size"
        return f"give {root.given} bounds that keep it true, or fix the size: use {root.value} or Dim.STATIC"
    names = " and ".join(roots[n].given for n in used)
    if expr[0] == "==":
        solved = _solved(fact, terms, roots)
        return solved or f"use one Dim, or one that follows from the other, for {names}"
    return f"give {names} bounds that keep it true, or fix their sizes"


def _of_roots(expr: Any, symbols: Mapping[str, Relation], roots: Mapping[str, Root]) -> Any:
    """The expression over one symbol a root; `_name` says which."""
    env = ShapeEnv()
    values = {
        n: env.create_symbol(r.value, n, False, low=r.range.low, high=r.range.high)
        for n, r in roots.items()
    }
    return evaluate(
        expr,
        {n: r.factor * values[r.name] + r.offset for n, r in symbols.items() if r.name in values},
    )


def _name(fact: SymBool, symbol: str) -> str:
    return str(fact.env.sources[symbol])


def _bounds(root: Root, fact: SymBool, factor: int) -> tuple[int | None, int | None] | None:
    """What the root's min and max must be for factor * root + constant (op) 0; None where they are not bounds."""
    low, high = root.low, root.high
    limit, rest = divmod(-fact.difference.const, factor)
    if fact.op == "<=" and factor < 0:
        return limit + (rest != 0), high
    if fact.op == "<=":
        return low, limit
    if fact.op == "!=" and limit < root.value:
        return limit + 1, high
    return (low, limit - 1) if fact.op == "!=" else None


def _with_bounds(root: Root, low: int | None, high: int | None) -> str:
    return repr(Dim(root.name, low, high)) if root.kind == "named" else f"bounds [{low}, {high}]"


def _solved(fact: Any, terms: Any, roots: Mapping[str, Root]) -> str:
    """How one of two roots follows from the other; "" where that cannot be said."""
    if terms is None or len(terms) != 2:
        return ""
    found = []
    for (y, one), (x, factor) in (terms[::-1], terms):
        root, other = roots[_name(fact, y)], roots[_name(fact, x)]
        if abs(one) == 1 and one * factor < 0:
            relation = Relation(other.name, abs(factor), -one * fact.difference.const)
            value = other.given if str(relation) == other.name else str(relation)
            found.append((relation.offset < 0, f"use {value} in place of {root.given}"))
    return min(found, key=lambda x: x[0])[1] if found else ""


def _text(expr: Any, symbols: Mapping[str, Relation], roots: Mapping[str, Root]) -> str:
    if isinstance(expr, str):
        return _sized(symbols[expr], roots) if expr in symbols else expr
    if isinstance(expr, tuple):
        text = f" {expr[0]} ".join(_text(x, symbols, roots) for x in expr[1:])
        return text if expr[0] in ("==", "!=", "<=", "<") else f"({text})"
    return str(expr)


def _sized(relation: Relation, roots: Mapping[str, Root]) -> str:
    root = roots[relation.name]
    if root.kind == "named":
        return str(relation)
    return str(relation).replace(root.name, root.text)
