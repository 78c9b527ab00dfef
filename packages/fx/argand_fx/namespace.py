"""Unique, legal names."""

from __future__ import annotations

import builtins
import functools
import keyword
import re
from typing import Any

from argand_c10 import Operator

__all__ = ["Namespace", "base_name", "legal_name"]

_ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
_NUMBERED = re.compile(r"(.*[^_0-9])_(\d+)\Z")
_SYMBOL = re.compile(r"s\d+\Z")
_RESERVED = frozenset((*dir(builtins), *keyword.kwlist, *keyword.softkwlist, "self"))


@functools.lru_cache(8192)
def legal_name(candidate: str) -> str:
    """`candidate` as a Python name that hides no builtin, keyword or symbol of sizes (`s0`)."""
    name = _ILLEGAL.sub("_", candidate).strip("_") if "__" in candidate else candidate
    name = _ILLEGAL.sub("_", name) or "_"
    if name[0].isdigit():
        name = "_" + name
    if name in _RESERVED or _SYMBOL.match(name):
        name += "_1"
    return name


@functools.lru_cache(8192)
def base_name(target: Any) -> str:
    """What a node that calls or fetches `target` is named after."""
    if isinstance(target, str):
        return legal_name(target.lstrip("*"))
    if isinstance(target, Operator):
        return legal_name(target.name.rpartition("::")[2])
    return legal_name(getattr(target, "__name__", None) or type(target).__name__)


class Namespace:
    """Names in use; `create_name` gives one that is not."""

    __slots__ = ("_counts", "_used")

    def __init__(self, used: Namespace | None = None) -> None:
        self._used: set[str] = set(used._used) if used else set()
        self._counts: dict[str, int] = dict(used._counts) if used else {}

    def create_name(self, candidate: str) -> str:
        """A name not given before: `candidate` made legal, or that with a number."""
        return self.unique(legal_name(candidate))

    def unique(self, name: str) -> str:
        """`create_name` for a candidate that is legal already."""
        used = self._used
        if name not in used:
            used.add(name)
            return name
        count = self._counts.get(name)
        base = name
        if count is None:
            numbered = _NUMBERED.match(name)
            if numbered:
                base = numbered[1]
            count = self._counts.get(base, 0)
        while True:
            count += 1
            result = f"{base}_{count}"
            if result not in used:
                break
        self._counts[base] = count
        used.add(result)
        return result

    def release(self, name: str) -> None:
        """Give a name back."""
        self._used.discard(name)

    def __contains__(self, name: str) -> bool:
        return name in self._used
