"""Functions of libraries that are made of operators and stay single nodes in recorded graphs, as operators do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["find_leaf_function", "leaf_functions", "places"]

Places = Iterable[tuple[dict[str, Any], str]]
_libraries: list[Callable[[], Places]] = []


def leaf_functions(library: Callable[[], Places]) -> None:
    """Make the functions of a library known.

    Args:
        library: called when they are wanted; gives the dicts of modules that hold such functions, with their names there.
    """
    _libraries.append(library)


def places() -> Iterator[tuple[dict[str, Any], str]]:
    """Where all of them are."""
    for library in _libraries:
        yield from library()


def find_leaf_function(name: str) -> Any:
    """The function of that module and name.

    Raises:
        LookupError: there is none.
    """
    for scope, key in places():
        found = scope[key]
        if f"{found.__module__}.{found.__qualname__}" == name:
            return found
    raise LookupError(name)
