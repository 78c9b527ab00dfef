"""Guards for another process: what exists only here is said by name or by hash."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from argand_dynamo.guards.build import Guard


def _class_attribute(guard: Guard, hash_code: Callable[[CodeType], str]) -> list[Guard]:
    """A class attribute that is a descriptor, by the functions in it: the descriptor itself has no name."""
    name, expected = guard.value
    inner = guard.source + (("attr", name),)
    if isinstance(expected, property):
        return [
            Guard(inner + (("attr", part),), "CODE", hash_code(function.__code__))
            for part in ("fget", "fset", "fdel")
            if (function := getattr(expected, part)) is not None and hasattr(function, "__code__")
        ]
    if isinstance(expected, staticmethod):
        return [Guard(inner, "ID", expected.__func__)]
    if isinstance(expected, classmethod):
        return [Guard(inner + (("func",),), "ID", expected.__func__)]
    if isinstance(expected, dict | list | set):
        # What the trace has looked at in it has guards of its own.
        return [Guard(inner, "TYPE", type(expected))]
    return [guard]


def portable(guards: Iterable[Any], hash_code: Callable[[CodeType], str]) -> list[Guard]:
    """The same guards with code objects replaced by their hashes, and descriptors of classes by what is in them.

    What still has no name elsewhere (an object made at run time, say) stays, and refuses to become plain data.
    """
    result: list[Guard] = []
    for item in guards:
        guard = Guard(*item)
        if guard.kind == "CODE" and isinstance(guard.value, CodeType):
            result.append(guard._replace(value=hash_code(guard.value)))
        elif guard.kind == "CLASS_ATTR" and len(guard.value) == 2:
            result.extend(_class_attribute(guard, hash_code))
        elif guard.kind == "TENSOR":
            result.append(guard._replace(value=tuple(guard.value)))
        else:
            result.append(guard)
    return result
