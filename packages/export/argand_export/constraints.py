"""What a program demands of the sizes of its inputs, and whether that is what the user said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argand_export.dims import DerivedDim, Dim, DimHint, Relation
from argand_fx.shapes import ShapeEnv, ShapeGuard
from argand_fx.shapes.sym_int import SymBool, evaluate

__all__ = ["ConstraintViolationError", "Range", "Relations", "check", "relations_of"]

# (number of the leaf, dimension) -> what its size is.
Relations = dict[tuple[int, int], Relation]


class ConstraintViolationError(ValueError):
    """The program treats sizes apart that dynamic_shapes says may vary."""


@dataclass(frozen=True, slots=True)
class Range:
    """The values that a dimension may have, both ends included; `high` None: any."""

    low: int
    high: int | None = None

    def __contains__(self, value: int) -> bool:
        return self.low <= value and (self.high is None or value <= self.high)

    def __str__(self) -> str:
        return f"[{self.low}, {'inf' if self.high is None else self.high}]"


@dataclass
class _Root:
    """A named dimension: bounds that the user gave, the example's value, and the bounds that hold so far."""

    name: str
    value: int
    low: int | None
    high: int | None
    automatic: bool
    range: Range


def relations_of(
    leaves: Sequence[Any], dims: Sequence[Any], symbols: Mapping[str, tuple[int, int]]
) -> Relations:
    """The dimension that each varying size follows from; unnamed ones are called after their symbol."""
    names = {place: name for name, place in symbols.items()}
    found: Relations = {}
    for i, spec in enumerate(dims):
        for d, dim in (spec or {}).items():
            if isinstance(dim, Dim):
                found[i, d] = Relation(dim.name)
            elif isinstance(dim, DerivedDim):
                found[i, d] = Relation(dim.root.name, dim.factor, dim.offset)
            elif isinstance(dim, DimHint) and dim.kind != "static":
                found[i, d] = Relation(names.get((i, d), f"s{i}_{d}"))
    _check_examples(leaves, dims, found)
    return found


def _check_examples(leaves: Sequence[Any], dims: Sequence[Any], relations: Relations) -> None:
    seen: dict[str, tuple[int, str]] = {}
    for (i, d), relation in relations.items():
        size = leaves[i].shape[d]
        where = f"dimension {d} of input {i}"
        value = relation.solve(size)
        if value is None:
            raise ValueError(
                f"export: got the example size {size} at {where}, expected one that is {relation}"
            )
        known, first = seen.setdefault(relation.name, (value, where))
        if known != value:
            raise ValueError(
                f"export: got Dim {relation.name!r} = {known} at {first} and {value} at {where}, expected equal sizes in the example"
            )
        dim = dims[i][d]
        root = dim.root if isinstance(dim, DerivedDim) else dim
        if isinstance(root, Dim) and value not in Range(root.min or 0, root.max):
            raise ValueError(f"export: got the example size {size} at {where}, outside of {root}")


def _roots(leaves: Sequence[Any], dims: Sequence[Any], relations: Relations) -> dict[str, _Root]:
    roots: dict[str, _Root] = {}
    for (i, d), relation in relations.items():
        dim = dims[i][d]
        root = dim.root if isinstance(dim, DerivedDim) else dim
        value = relation.solve(leaves[i].shape[d])
        assert value is not None
        low = root.min if isinstance(root, Dim) else None
        high = root.max if isinstance(root, Dim) else None
        made = _Root(
            relation.name, value, low, high, isinstance(root, DimHint) and root.kind == "auto",
            Range(1 if low is None else low, high),
        )  # fmt: skip
        known = roots.setdefault(relation.name, made)
        if (known.low, known.high) != (low, high):
            raise ValueError(
                f"export: got two Dims called {relation.name!r} with other bounds, expected one"
            )
    return roots


def check(
    env: ShapeEnv,
    symbols: Mapping[str, tuple[int, int]],
    relations: Relations,
    leaves: Sequence[Any],
    dims: Sequence[Any],
) -> tuple[dict[str, Range], dict[str, Relation]]:
    """Compare the guards of a trace with the user's dimensions.

    Returns:
        The range of each dimension, and what each symbol of the graph is in terms of them.

    Raises:
        ConstraintViolationError: a guard does not hold for all sizes that the user allows.
    """
    by_symbol = {name: relations[place] for name, place in symbols.items() if place in relations}
    unknown = [name for name in env.sources if name not in by_symbol]
    if unknown:
        raise ConstraintViolationError(
            f"export: the sizes {unknown} come from tensors that are not laid out row by row, or that are no arguments; "
            "give contiguous example tensors"
        )
    roots = _roots(leaves, dims, relations)
    while True:
        narrowed = False
        values, names = _values(roots)
        bindings = {n: r.factor * values[r.name] + r.offset for n, r in by_symbol.items()}
        for guard in env.guards:
            open_ = evaluate(guard.expr, bindings)
            if open_ is True:
                continue
            if not _narrow(guard, open_, roots, names):
                raise ConstraintViolationError(_violation(guard, by_symbol, roots))
            narrowed = True
            break
        if not narrowed:
            return {name: root.range for name, root in roots.items()}, by_symbol


def check_later(
    guards: Sequence[ShapeGuard], symbols: Mapping[str, Relation], ranges: Mapping[str, Range]
) -> None:
    """See that guards which a compiler left hold for all sizes that a program takes.

    Raises:
        ConstraintViolationError: one does not.
    """
    roots = {n: _Root(n, max(r.low, 2), r.low, r.high, False, r) for n, r in ranges.items()}
    values, _ = _values(roots)
    bindings = {n: r.factor * values[r.name] + r.offset for n, r in symbols.items()}
    for guard in guards:
        if evaluate(guard.expr, bindings) is not True:
            raise ConstraintViolationError(_violation(guard, symbols, roots))


def _values(roots: Mapping[str, _Root]) -> tuple[dict[str, Any], dict[str, str]]:
    """A symbol for each dimension, in an environment that knows their ranges; and dimensions by symbol."""
    env = ShapeEnv()
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    for root in roots.values():
        if root.range.low == root.range.high:
            values[root.name] = root.range.low
            continue
        made = env.create_symbol(
            root.value, root.name, False, low=root.range.low, high=root.range.high
        )
        values[root.name] = made
        names[str(made)] = root.name
    return values, names


def _narrow(
    guard: ShapeGuard, open_: Any, roots: Mapping[str, _Root], names: Mapping[str, str]
) -> bool:
    """Narrow the range of an automatic dimension, or the least size of one whose bounds the user left open, to what a guard on it alone
    demands; False where that is not allowed."""
    if not isinstance(open_, SymBool):
        return False
    env, (monomial, factor) = open_.difference.env, open_.difference.terms[0]
    atom = env.atoms[monomial[0]]
    alone = len(open_.difference.terms) == len(monomial) == 1 and atom.op == "symbol"
    used = dict.fromkeys(names[n] for n in _names(open_.expr) if n in names)
    if not alone:  # a fact that is no bound: all automatic dimensions in it get the example's sizes
        for name in used:
            if not roots[name].automatic:
                return False
            roots[name].range = Range(roots[name].value, roots[name].value)
        return bool(used)
    root = roots[names[atom.name]]
    low, high = root.range.low, root.range.high
    # factor * value + constant (op) 0
    limit, rest = divmod(-open_.difference.const, factor)
    if open_.op == "!=" and limit == low and not rest:
        low += 1
    elif open_.op == "<=" and factor < 0:
        low = max(low, limit + (rest != 0))
    elif open_.op == "<=" and root.automatic:
        high = limit if high is None else min(high, limit)
    elif open_.op == "==" and root.automatic and not rest:
        low = high = limit
    else:
        return False
    if not root.automatic and (root.low is not None or low > 2):
        return False
    root.range = Range(low, high)
    return root.value in root.range


def _violation(
    guard: ShapeGuard, symbols: Mapping[str, Relation], roots: Mapping[str, _Root]
) -> str:
    used = [r.name for n, r in symbols.items() if n in _names(guard.expr)]
    ranges = ", ".join(f"{n} in {roots[n].range}" for n in dict.fromkeys(used))
    where = ""
    if guard.location is not None:
        file, line, function = guard.location
        where = f"\n  at {file}:{line}, in {function}"
    return (
        f"export: the program needs {_text(guard.expr, symbols)}, which does not hold for all sizes ({ranges}){where}\n"
        f"  fix: {_fix(guard.expr, symbols, roots)}"
    )


def _fix(expr: Any, symbols: Mapping[str, Relation], roots: Mapping[str, _Root]) -> str:
    op, a, b = expr
    used = list(dict.fromkeys(symbols[n].name for n in _names(expr) if n in symbols))
    if len(used) == 1:
        root = roots[used[0]]
        if op == "==" and _remainder(a, b):
            k = _remainder(a, b)
            return f"say so: use {k}*Dim({'_' + root.name!r}) in place of Dim({root.name!r})"
        if op == "==":
            return f"fix the size: use {root.value} or Dim.STATIC in place of Dim({root.name!r}), or write the program without a case for that size"
        bound = f"a min= or max= that keeps {_text(expr, symbols)} true"
        return f"give Dim({root.name!r}) {bound}"
    if op == "==":
        return (
            f"use one Dim, or one that follows from the other, for {' and '.join(map(repr, used))}"
        )
    return (
        f"give the Dims {', '.join(map(repr, used))} bounds that keep it true, or fix their sizes"
    )


def _remainder(a: Any, b: Any) -> int:
    """k of `x % k == 0`."""
    for x, zero in ((a, b), (b, a)):
        if isinstance(x, tuple) and x[0] == "%" and zero == 0 and isinstance(x[2], int):
            return x[2]
    return 0


def _names(expr: Any) -> list[str]:
    if isinstance(expr, str):
        return [expr]
    if isinstance(expr, tuple):
        return [n for x in expr[1:] for n in _names(x)]
    return []


def _text(expr: Any, symbols: Mapping[str, Relation]) -> str:
    if isinstance(expr, str):
        return str(symbols[expr]) if expr in symbols else expr
    if isinstance(expr, tuple):
        parts = [_text(x, symbols) for x in expr[1:]]
        text = f" {expr[0]} ".join(parts)
        return text if expr[0] in ("==", "!=", "<=", "<") else f"({text})"
    return str(expr)
