"""Libraries with operators of other packages, which packaged programs load before they run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["OperatorLibrary", "operator_libraries", "register_operator_library"]


@dataclass(frozen=True, slots=True)
class OperatorLibrary:
    """Operators that a function of a shared library registers.

    Attributes:
        operators: their overload names.
        path: the library; its file name is its SONAME.
        init: the name of `int init(const ArgandApi*)`, which registers them with their kernels, again and again if need be.
        module: what Python imports instead.
    """

    operators: frozenset[str]
    path: Path
    init: str
    module: str


_libraries: list[OperatorLibrary] = []


def register_operator_library(library: OperatorLibrary) -> None:
    """Let packages of programs that call the library's operators name it."""
    _libraries.append(library)


def operator_libraries() -> tuple[OperatorLibrary, ...]:
    """Those registered in this process."""
    return tuple(_libraries)


def needed(operators: set[str]) -> list[dict[str, object]]:
    """The libraries of these operators, as a package's manifest has them."""
    return [
        {
            "library": library.path.name,
            "init": library.init,
            "module": library.module,
            "operators": sorted(operators & library.operators),
        }
        for library in _libraries
        if operators & library.operators
    ]
