"""Dimensions that others follow from, and what a fact about sizes says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argand_export.dims import Relation
from argand_fx.shapes import ShapeEnv
from argand_fx.shapes.sym_int import SymBool, evaluate

__all__ = ["Range", "Root", "as_multiple", "least_value", "linear", "symbols_of"]

_FACTORS = range(2, 65)  # that a size is tried as a multiple of


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
class Root:
    """A dimension that others may follow from.

    Attributes:
        name: the Dim's, or the symbol's where there is none.
        text: how messages write its size.
        given: how messages write what the user gave, as "Dim('n')".
        value: in the example.
        low, high: the user's bounds.
        kind: "named"; "dynamic": its bounds are the program's, and it may follow from others; "auto": it may be fixed, too.
        range: the values that are left.
    """

    name: str
    text: str
    given: str
    value: int
    low: int | None
    high: int | None
    kind: str
    range: Range


def symbols_of(expr: Any) -> list[str]:
    """The names of the symbols in a guard."""
    if isinstance(expr, str):
        return [expr]
    return [n for x in expr[1:] for n in symbols_of(x)] if isinstance(expr, tuple) else []


def linear(fact: SymBool) -> list[tuple[str, int]] | None:
    """(symbol, factor) of the terms, if they are symbols alone."""
    found = []
    for monomial, factor in fact.difference.terms:
        atom = fact.difference.env.atoms[monomial[0]]
        if len(monomial) != 1 or atom.op != "symbol":
            return None
        found.append((atom.name, factor))
    return found


def as_multiple(
    expr: Any, symbols: Mapping[str, Relation], roots: Mapping[str, Root], root: Root
) -> Relation | None:
    """`k * name + rest` with the least k for which an expression holds for all values that are so; None: there is none."""
    for factor in _FACTORS:
        value, rest = divmod(root.value, factor)
        if value < 1:
            return None
        made = ShapeEnv().create_symbol(value, root.name, False, low=1)
        if _holds(expr, symbols, roots, root, factor * made + rest):
            return Relation(root.name, factor, rest)
    return None


def least_value(
    expr: Any, symbols: Mapping[str, Relation], roots: Mapping[str, Root], root: Root
) -> int | None:
    """The least value from which on an expression holds, if that is not above the example's; None: there is none."""
    for low in range(root.range.low + 1, min(root.value, _FACTORS.stop) + 1):
        made = ShapeEnv().create_symbol(root.value, root.name, False, low=low, high=root.range.high)
        if low != root.range.high and _holds(expr, symbols, roots, root, made):
            return low
    return None


def _holds(
    expr: Any, symbols: Mapping[str, Relation], roots: Mapping[str, Root], root: Root, size: Any
) -> bool:
    """Whether an expression holds for all that `size` may be, with the example's values of the other roots."""
    values = {name: r.value for name, r in roots.items()} | {root.name: size}
    bindings = {n: r.factor * values[r.name] + r.offset for n, r in symbols.items()}
    return evaluate(expr, bindings) is True
