"""What a program demands of the sizes of its inputs, and whether that is what the user said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argand_export.dims import DerivedDim, Dim, DimHint, Relation
from argand_export.roots import Range, Root, as_multiple, least_value, linear, symbols_of
from argand_export.violations import describe
from argand_fx.shapes import ShapeEnv, ShapeGuard
from argand_fx.shapes.sym_int import SymBool, evaluate

__all__ = [
    "ConstraintViolationError",
    "Relations",
    "check",
    "check_later",
    "relations_of",
]

# (number of the leaf, dimension) -> what its size is.
Relations = dict[tuple[int, int], Relation]

_FEW = 10_000  # sizes that are tried one by one


class ConstraintViolationError(ValueError):
    """The program treats sizes apart that dynamic_shapes says may vary."""


def relations_of(
    leaves: Sequence[Any],
    dims: Sequence[Any],
    symbols: Mapping[str, tuple[int, int]],
    paths: Sequence[str],
) -> Relations:
    """The dimension that each varying size follows from; unnamed ones are called after their symbol.

    Args:
        leaves, paths: the arguments' leaves, and how a user writes them.
        dims: what the user said of each.
        symbols: the leaf and dimension of each symbol.
    """
    names = {place: name for name, place in symbols.items()}
    taken = {_root_of(dim).name for spec in dims for dim in (spec or {}).values() if _is_named(dim)}
    found: Relations = {}
    for i, spec in enumerate(dims):
        for d, dim in (spec or {}).items():
            if isinstance(dim, Dim):
                found[i, d] = Relation(dim.name)
            elif isinstance(dim, DerivedDim):
                found[i, d] = Relation(dim.root.name, dim.factor, dim.offset)
            elif isinstance(dim, DimHint) and dim.kind != "static":
                found[i, d] = Relation(_unused(names.get((i, d), f"s{i}_{d}"), taken))
    _check_examples(leaves, dims, found, paths)
    return found


def _is_named(dim: Any) -> bool:
    return isinstance(dim, (Dim, DerivedDim))


def _root_of(dim: Any) -> Any:
    return dim.root if isinstance(dim, DerivedDim) else dim


def _unused(name: str, taken: Any) -> str:
    while name in taken:
        name = f"_{name}"
    return name


def _check_examples(
    leaves: Sequence[Any], dims: Sequence[Any], relations: Relations, paths: Sequence[str]
) -> None:
    seen: dict[str, tuple[int, str]] = {}
    for (i, d), relation in relations.items():
        size = leaves[i].shape[d]
        where = f"{paths[i]}.shape[{d}]"
        value = relation.solve(size)
        if value is None:
            raise ConstraintViolationError(
                f"export: got the example size {size} at {where}, expected one that is {relation}"
            )
        known, first = seen.setdefault(relation.name, (value, where))
        if known != value:
            raise ConstraintViolationError(
                f"export: got Dim {relation.name!r} = {known} at {first} and {value} at {where}, expected equal sizes in the example; "
                "give sizes that differ two Dims"
            )
        root = _root_of(dims[i][d])
        if value not in Range(root.min or 0, root.max):
            raise ConstraintViolationError(
                f"export: got the example size {size} at {where}, outside of {root}; give an example or bounds that fit"
            )


def _roots(
    leaves: Sequence[Any], dims: Sequence[Any], relations: Relations, paths: Sequence[str]
) -> dict[str, Root]:
    roots: dict[str, Root] = {}
    for (i, d), relation in relations.items():
        root = _root_of(dims[i][d])
        value = relation.solve(leaves[i].shape[d])
        assert value is not None
        where = f"{paths[i]}.shape[{d}]"
        text, given, kind = where, f"{root} at {where}", getattr(root, "kind", "named")
        if isinstance(root, Dim):
            text, given = root.name, f"Dim({root.name!r})"
        made = Root(
            relation.name, text, given, value, root.min, root.max, kind,
            Range(1 if root.min is None else root.min, root.max),
        )  # fmt: skip
        known = roots.setdefault(relation.name, made)
        if (known.low, known.high) != (root.min, root.max):
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
    paths: Sequence[str],
) -> tuple[dict[str, Range], dict[str, Relation]]:
    """Compare the guards of a trace with the user's dimensions.

    Args:
        relations: of the varying sizes; unnamed dimensions that must follow from others do so afterwards.

    Returns:
        The range of each dimension, and what each symbol of the graph is in terms of them.

    Raises:
        ConstraintViolationError: guards do not hold for all sizes that the user allows.
    """
    by_symbol = {name: relations[place] for name, place in symbols.items() if place in relations}
    unknown = [name for name in env.sources if name not in by_symbol]
    if unknown:
        raise ConstraintViolationError(
            f"export: the sizes {unknown} come from tensors that are not laid out row by row, or that are no arguments; "
            "give contiguous example tensors"
        )
    solver = _Solver(by_symbol, relations, _roots(leaves, dims, relations, paths))
    violated = solver.run(env.guards)
    if violated:
        raise ConstraintViolationError(describe(violated, solver.symbols, solver.roots))
    return {name: root.range for name, root in solver.roots.items()}, solver.symbols


def check_later(
    guards: Sequence[ShapeGuard], symbols: Mapping[str, Relation], ranges: Mapping[str, Range]
) -> None:
    """See that guards which a compiler left hold for all sizes that a program takes.

    Raises:
        ConstraintViolationError: one does not.
    """
    roots = {
        n: Root(n, n, f"Dim({n!r})", max(r.low, 2), r.low, r.high, "named", r)
        for n, r in ranges.items()
    }
    solver = _Solver(dict(symbols), {}, roots)
    violated = [g for g in guards if solver.status(g) is not True]
    if violated:
        raise ConstraintViolationError(describe(violated, symbols, roots))


class _Solver:
    """Narrows what the user left open until the guards hold.

    Attributes:
        symbols, relations: what symbols and varying sizes are in terms of the roots.
        roots: by name.
        names: the roots of the symbols that stand for them.
    """

    def __init__(
        self, symbols: dict[str, Relation], relations: Relations, roots: dict[str, Root]
    ) -> None:
        self.symbols, self.relations, self.roots = symbols, relations, roots
        self.names: dict[str, str] = {}
        self._bind()

    def _bind(self) -> None:
        """Stand for the roots by symbols of an environment that knows their ranges."""
        env = ShapeEnv()
        self.names = {}
        self.values: dict[str, Any] = {}
        for root in self.roots.values():
            low, high = root.range.low, root.range.high
            if low == high:
                self.values[root.name] = low
                continue
            made = env.create_symbol(root.value, root.name, False, low=low, high=high)
            self.values[root.name] = made
            self.names[str(made)] = root.name

    def run(self, guards: Sequence[ShapeGuard]) -> list[ShapeGuard]:
        """The guards that cannot be met."""
        violated: list[ShapeGuard] = []
        pending = list(guards)
        while pending:
            guard = pending.pop(0)
            status = self.status(guard)
            if status is True:
                continue
            if isinstance(status, SymBool) and self._give_in(guard, status):
                self._bind()
                pending = [g for g in guards if g not in violated]
            else:
                violated.append(guard)
        return violated

    def status(self, guard: ShapeGuard) -> Any:
        """Whether it holds: True, False, or what remains of it."""
        values = self.values
        bindings = {n: r.factor * values[r.name] + r.offset for n, r in self.symbols.items()}
        found = evaluate(guard.expr, bindings)
        if not isinstance(found, SymBool):
            return bool(found)
        used = self._used(found)
        if len(used) == 1 and used[0].range.high is not None:
            low, high = used[0].range.low, used[0].range.high
            if high - low < _FEW:
                (name,) = {n for n, root in self.names.items() if root == used[0].name}
                return _holds_for_all(found, name, range(low, high + 1)) or found
        return found

    def _used(self, fact: SymBool) -> list[Root]:
        return [self.roots[n] for n in dict.fromkeys(self.names[s] for s in symbols_of(fact.expr))]

    def _give_in(self, guard: ShapeGuard, fact: SymBool) -> bool:
        """Narrow or relate the roots of a guard that does not hold for all values; False where the user's word stands against it."""
        used = self._used(fact)
        if len(used) == 1:
            root, expr = used[0], guard.expr
            return (
                self._narrow(root, fact)
                or self._from_least(expr, root)
                or self._as_multiple(expr, root)
                or _fix(used)
            )
        return self._equal(fact) or _fix(used)

    def _narrow(self, root: Root, fact: SymBool) -> bool:
        """The root's bounds from a comparison of it alone with a number."""
        alone = linear(fact)
        if alone is None:
            return False
        ((_, factor),) = alone
        low, high = root.range.low, root.range.high
        # factor * value + constant (op) 0
        limit, rest = divmod(-fact.difference.const, factor)
        if fact.op == "<=":
            if factor < 0:
                low = max(low, limit + (rest != 0))
            else:
                high = limit if high is None else min(high, limit)
        elif fact.op == "==" or rest:
            return False
        elif limit < root.value:
            low = max(low, limit + 1)
        else:
            high = limit - 1 if high is None else min(high, limit - 1)
        return self._limit(root, Range(low, high))

    def _from_least(self, expr: Any, root: Root) -> bool:
        """The root from the least value on for which a guard holds that is no comparison of it alone, as `1 <= n // 2`."""
        low = least_value(expr, self.symbols, self.roots, root)
        return low is not None and self._limit(root, Range(low, root.range.high))

    def _limit(self, root: Root, wanted: Range) -> bool:
        """Take this range if the user left it open: a named dimension may need 2 or more, others whatever is said."""
        if root.value not in wanted or wanted.low == wanted.high:
            return False
        if root.kind == "named":
            if wanted.high != root.range.high or wanted.low > 2 or root.low is not None:
                return False
        elif (root.low is not None and wanted.low > root.low) or (
            root.high is not None and wanted.high != root.high
        ):
            return False
        root.range = wanted
        return True

    def _as_multiple(self, expr: Any, root: Root) -> bool:
        """An unnamed root as a multiple of another one, with which the guard holds."""
        if root.kind == "named":
            return False
        found = as_multiple(expr, self.symbols, self.roots, root)
        if found is None:
            return False
        name = _unused(f"_{root.name}", self.roots)
        relation = Relation(name, found.factor, found.offset)
        value = relation.solve(root.value)
        assert value is not None
        text = f"{name} of {root.text}"
        self.roots[name] = Root(
            name, text, root.given, value, None, None, root.kind, Range(1, None)
        )
        return self._replace(root, relation)

    def _equal(self, fact: SymBool) -> bool:
        """One of two roots from the other, by an equation."""
        terms = linear(fact)
        if fact.op != "==" or terms is None or len(terms) != 2:
            return False
        for (y, one), (x, factor) in (terms, terms[::-1]):
            root = self.roots[self.names[y]]
            if root.kind == "named" or abs(one) != 1 or one * factor > 0:
                continue
            relation = Relation(self.names[x], abs(factor), -one * fact.difference.const)
            if self._replace(root, relation):
                return True
        return False

    def _replace(self, root: Root, relation: Relation) -> bool:
        """Let a root follow from another one."""
        other = self.roots[relation.name]
        low = max(other.range.low, -((relation.offset - root.range.low) // relation.factor))
        high = other.range.high
        if root.range.high is not None:
            most = (root.range.high - relation.offset) // relation.factor
            high = most if high is None else min(high, most)
        if (low, high) != (other.range.low, other.range.high):
            if not self._limit(other, Range(low, high)):
                return False
        for table in (self.symbols, self.relations):
            for key, known in list(table.items()):
                if known.name == root.name:
                    table[key] = known.of(relation)  # type: ignore[index]
        del self.roots[root.name]
        return True


def _holds_for_all(fact: SymBool, name: str, values: range) -> bool:
    try:
        return all(evaluate(fact.expr, {name: v}) for v in values)
    except ZeroDivisionError:
        return False


def _fix(used: Sequence[Root]) -> bool:
    """Give all automatic roots the example's sizes."""
    automatic = [root for root in used if root.kind == "auto"]
    for root in automatic:
        root.range = Range(root.value, root.value)
    return bool(automatic)
