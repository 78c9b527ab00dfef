"""Libraries with operators of other packages, which packaged programs load before they run."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "OperatorLibrary",
    "import_operators",
    "operator_libraries",
    "register_operator_library",
    "register_operator_module",
]


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


_modules: dict[str, str] = {}


def register_operator_module(namespace: str, module: str) -> None:
    """Have `load` import this module when a program calls operators of the namespace that are not registered."""
    _modules[namespace] = module


def import_operators(namespace: str) -> None:
    """Import the module that was registered for a namespace, if one was. Files do not name modules: loading one runs no code of its choice."""
    if namespace in _modules:
        importlib.import_module(_modules[namespace])


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
