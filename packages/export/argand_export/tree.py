"""Nested containers of arguments and results: their leaves in order, and a description that JSON holds.

A description is None for a leaf, else ["tuple" | "list", [description..]], ["dict", [[key, description]..]] or
["namedtuple", "module:name", [description..]].
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

Description = Any


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


def flatten(value: Any) -> tuple[list[Any], Description]:
    """The leaves of nested tuples, lists, dicts and named tuples, and the description of the nesting."""
    leaves: list[Any] = []

    def visit(x: Any) -> Description:
        if _is_namedtuple(x):
            kind = type(x)
            return ["namedtuple", f"{kind.__module__}:{kind.__qualname__}", [visit(v) for v in x]]
        if type(x) in (tuple, list):
            return ["tuple" if type(x) is tuple else "list", [visit(v) for v in x]]
        if isinstance(x, dict):
            for key in x:
                if not isinstance(key, (str, int)) or isinstance(key, bool):
                    raise TypeError(f"export: got a dict with the key {key!r}, expected str or int")
            return ["dict", [[key, visit(v)] for key, v in x.items()]]
        leaves.append(x)
        return None

    return leaves, visit(value)


def unflatten(leaves: Iterator[Any], description: Description) -> Any:
    """The containers again, with leaves taken in order."""
    if description is None:
        return next(leaves)
    kind = description[0]
    if kind == "dict":
        return {key: unflatten(leaves, inner) for key, inner in description[1]}
    items = [unflatten(leaves, inner) for inner in description[-1]]
    if kind == "list":
        return items
    if kind == "tuple":
        return tuple(items)
    return _namedtuple(description[1], items)


def _namedtuple(name: str, items: list[Any]) -> Any:
    """Of a type in a module that is loaded already: files name types, and never have them imported."""
    module, _, qualname = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")):
        raise TypeError(
            f"export: got a result of the named tuple {name}, which is not loaded; import its module first"
        )
    return found(*items)


def check(description: Description) -> None:
    """Raises ValueError unless it is a description."""
    if description is None:
        return
    if isinstance(description, list) and len(description) == 2:
        kind, inner = description
        if kind in ("tuple", "list") and isinstance(inner, list):
            for x in inner:
                check(x)
            return
        if kind == "dict" and isinstance(inner, list):
            for pair in inner:
                if not (isinstance(pair, list) and len(pair) == 2 and type(pair[0]) in (str, int)):
                    raise ValueError(f"got {pair!r} in a dict, expected a key and a description")
                check(pair[1])
            return
    if isinstance(description, list) and len(description) == 3 and description[0] == "namedtuple":
        if isinstance(description[1], str) and isinstance(description[2], list):
            for x in description[2]:
                check(x)
            return
    raise ValueError(f"got {description!r}, expected a description of containers")


def paths(description: Description, start: str) -> list[str]:
    """How a user writes each leaf: "args[0]['x']"."""
    if description is None:
        return [start]
    if description[0] == "dict":
        return [p for key, inner in description[1] for p in paths(inner, f"{start}[{key!r}]")]
    return [p for i, inner in enumerate(description[-1]) for p in paths(inner, f"{start}[{i}]")]
