"""Values that stand for numbers known only when a graph runs."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from argand_c10.errors import DataDependentError

__all__ = ["UNKNOWN", "SymExpr", "SymbolicValue", "UnknownInteger", "symbol_names"]

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


class UnknownInteger:
    """An integer that no expression gives: arithmetic with it gives it again, everything else raises `DataDependentError`."""

    __slots__ = ()

    def _same(self, *_: Any) -> UnknownInteger:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = _same

    def _refuse(self, *_: Any) -> NoReturn:
        raise DataDependentError("a tensor's offset depends on the elements of another")

    __bool__ = __int__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __eq__ = _refuse
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "?"


UNKNOWN = UnknownInteger()


def symbol_names(value: object) -> list[str]:
    """The symbols of an expression, in the order in which they first occur."""
    return list(dict.fromkeys(_SYMBOL.findall(str(value))))
