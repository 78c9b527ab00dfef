"""The registered decompositions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["Decomposition", "decompositions", "register_decomposition"]

# decomposition(ops, *args, **kwargs) -> the operator's results, made of calls of the attributes of `ops`;
# keyword-only arguments of the schema come by keyword.
Decomposition = Callable[..., Any]

_table: dict[str, Decomposition] = {}


def register_decomposition(name: str) -> Callable[[Decomposition], Decomposition]:
    """Decorator of the decomposition of the overload `name`; a later one replaces an earlier one."""

    def register(function: Decomposition) -> Decomposition:
        _table[name] = function
        return function

    return register


def decompositions(names: Iterable[str] | None = None) -> Mapping[str, Decomposition]:
    """The registered decompositions of these overloads, by default all.

    Raises:
        ValueError: if an overload has none.
    """
    if names is None:
        return dict(_table)
    found = {}
    for name in names:
        if name not in _table:
            known = ", ".join(sorted(_table))
            raise ValueError(f"decompositions: got {name!r}, expected one of {known}")
        found[name] = _table[name]
    return found
