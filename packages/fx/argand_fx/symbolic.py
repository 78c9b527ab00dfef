"""Values that stand for numbers known only when a graph runs."""

from __future__ import annotations

import re

__all__ = ["SymExpr", "SymbolicValue", "symbol_names"]

_SYMBOL = re.compile(r"\bs\d+\b")


class SymbolicValue:
    """Base of all symbolic scalars. `str(value)` is a Python expression over symbols `s0, s1, ...`."""

    __slots__ = ()


class SymExpr(SymbolicValue):
    """A symbolic scalar known by its text alone, as a parsed graph has it without a shape environment."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicValue) and str(other) == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def symbol_names(value: object) -> list[str]:
    """The symbols of an expression, in the order in which they first occur."""
    return list(dict.fromkeys(_SYMBOL.findall(str(value))))
