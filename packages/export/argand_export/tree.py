"""Nested containers of arguments and results: their leaves in order, and a description that JSON holds.

A description is None for a leaf, else ["tuple" | "list", [description..]], ["dict", [[key, description]..]],
["namedtuple", "module:name", [description..]] (results of operators are such, as "argand.return_types:max") or ["node", "name", context, [description..]] of a registered class.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from argand_c10 import Size, Tensor, find_operator

Description = Any


@dataclasses.dataclass(frozen=True, slots=True)
class _Node:
    """A class whose instances are containers."""

    kind: type
    name: str
    flatten: Callable[[Any], tuple[Sequence[Any], Any]]
    unflatten: Callable[[Sequence[Any], Any], Any]
    step: Callable[[Any, int], str]  # from the context, how a user writes part i


_by_type: dict[type, _Node] = {}
_by_name: dict[str, _Node] = {}


def register_pytree_node(
    cls: type,
    flatten: Callable[[Any], tuple[Sequence[Any], Any]],
    unflatten: Callable[[Sequence[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
) -> None:
    """Let instances of a class be containers among a program's arguments and results.

    Args:
        cls: the class; subclasses are not meant.
        flatten: gives the parts of an instance, and whatever else it needs as JSON holds it (None, numbers, strings, lists of them).
        unflatten: makes an instance of the two.
        serialized_type_name: what saved programs call it, by default "module.name". A process that loads one has to register it too.

    Raises:
        ValueError: it is registered already.
    """
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    _register(_Node(cls, name, flatten, unflatten, lambda context, i: f"[{i}]"))


def _register(node: _Node) -> None:
    if node.kind in _by_type or node.name in _by_name:
        raise ValueError(f"register_pytree_node: got {node.name}, which is registered already")
    _by_type[node.kind] = _by_name[node.name] = node


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> type:
    """Let instances of a dataclass be containers of their fields; those that are None are left out of them.

    Raises:
        TypeError: it is no dataclass.
    """
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"register_dataclass: got {cls!r}, expected a dataclass")
    fields = [f.name for f in dataclasses.fields(cls)]

    def flatten(value: Any) -> tuple[Sequence[Any], Any]:
        given = [n for n in fields if getattr(value, n) is not None]
        return [getattr(value, n) for n in given], given

    def unflatten(parts: Sequence[Any], given: Any) -> Any:
        return cls(**{**dict.fromkeys(fields), **dict(zip(given, parts, strict=True))})

    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    _register(_Node(cls, name, flatten, unflatten, lambda given, i: f".{given[i]}"))
    return cls


def is_node(cls: Any) -> bool:
    """Whether a class was registered."""
    return cls in _by_type


class Sizes(tuple[Any, ...]):
    """A Size while a program is traced: its entries may be symbolic."""

    __slots__ = ()


register_pytree_node(Size, lambda x: (list(x), None), lambda parts, _: Size(parts))
_by_type[Sizes] = _by_type[Size]
_register(
    _Node(
        OrderedDict,
        "collections.OrderedDict",
        lambda x: (list(x.values()), list(x)),
        lambda parts, keys: OrderedDict(zip(keys, parts, strict=True)),
        lambda keys, i: f"[{keys[i]!r}]",
    )
)


# The module that results of operators name as theirs.
_RESULTS = "argand.return_types"


def is_namedtuple(kind: Any) -> bool:
    """Whether a class is that of named tuples, or of an operator's results."""
    return issubclass(kind, tuple) and (hasattr(kind, "_fields") or kind.__module__ == _RESULTS)


def flatten(value: Any) -> tuple[list[Any], Description]:
    """The leaves of nested tuples, lists, dicts and named tuples, and the description of the nesting."""
    leaves: list[Any] = []

    def visit(x: Any) -> Description:
        if (
            isinstance(x, (Tensor, int, float, str)) or x is None
        ):  # a compiled call looks no class up
            leaves.append(x)
            return None
        if type(x) in (tuple, list):
            return ["tuple" if type(x) is tuple else "list", [visit(v) for v in x]]
        if type(x) is not dict and (node := _by_type.get(type(x))) is not None:
            parts, context = node.flatten(x)
            return ["node", node.name, context, [visit(v) for v in parts]]
        if is_namedtuple(type(x)):
            kind = type(x)
            return ["namedtuple", f"{kind.__module__}:{kind.__qualname__}", [visit(v) for v in x]]
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
    if kind == "node":
        if (node := _by_name.get(description[1])) is None:
            raise TypeError(
                f"export: got a container of the class {description[1]}, which is not registered; call register_dataclass or "
                "register_pytree_node first, as when the program was exported"
            )
        return node.unflatten(items, description[2])
    return _namedtuple(description[1], items)


def _namedtuple(name: str, items: list[Any]) -> Any:
    """Of a type in a module that is loaded already: files name types, and never have them imported."""
    found = _loaded(name)
    if found is None:
        raise TypeError(
            f"export: got a result of the named tuple {name}, which is not loaded; import its module first"
        )
    return found(*items) if hasattr(found, "_fields") else found(items)


def _loaded(name: str) -> Any:
    """The named tuple's type, None where its module is not loaded."""
    module, _, qualname = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if found is None and module == _RESULTS:
        try:
            kinds = find_operator(qualname).result_types
        except LookupError:
            return None
        found = next((kind for kind in kinds if kind is not None), None)
    return found if isinstance(found, type) and is_namedtuple(found) else None


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
    if isinstance(description, list) and len(description) == 4 and description[0] == "node":
        if isinstance(description[1], str) and isinstance(description[3], list):
            for x in description[3]:
                check(x)
            return
    raise ValueError(f"got {description!r}, expected a description of containers")


def paths(description: Description, start: str) -> list[str]:
    """How a user writes each leaf: "args[0]['x'].mask"."""
    if description is None:
        return [start]
    if description[0] == "dict":
        return [p for key, inner in description[1] for p in paths(inner, f"{start}[{key!r}]")]
    return [
        p
        for i, inner in enumerate(description[-1])
        for p in paths(inner, start + _step(description, i))
    ]


def _step(description: Description, i: int) -> str:
    if description[0] == "namedtuple" and (found := _loaded(description[1])) is not None:
        return f".{found.__match_args__[i]}"
    if description[0] == "node" and (node := _by_name.get(description[1])) is not None:
        return node.step(description[2], i)
    return f"[{i}]"
