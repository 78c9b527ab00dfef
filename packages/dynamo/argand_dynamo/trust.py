"""Which modules are part of Argand or of Python."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

__all__ = ["PLAIN", "is_compiler", "is_library_file", "is_standard", "is_trusted", "note_compiler"]

_STDLIB = frozenset(sys.stdlib_module_names) - {"__main__"}


def is_standard(module: str | None) -> bool:
    """Whether a module is part of Python."""
    return bool(module) and str(module).partition(".")[0] in _STDLIB


def is_trusted(module: str | None) -> bool:
    """Whether a module is part of Argand or of Python, so that its functions and classes do not change."""
    if not module:
        return False
    first = module.partition(".")[0]
    return first.startswith("argand") or first in _STDLIB


# A module that defines this name has its functions run as they are.
PLAIN = "__argand_plain__"
# Packages whose frames belong to the compiler, or to what computes without tensors, never to a program that is compiled.
_compilers = {"argand_c10", "argand_aten", "argand_autograd", "argand_fx", "argand_dynamo", "numpy"}


def note_compiler(part: Any) -> None:
    """The package of a backend, or of what it made, is part of the compiler too."""
    for module in (getattr(part, "__module__", None), type(part).__module__):
        first = str(module).partition(".")[0]
        if first.startswith("argand_"):
            _compilers.add(first)


def is_compiler(module: str) -> bool:
    """Whether frames of a module are never compiled when they are met."""
    first = module.partition(".")[0]
    return first in _compilers or first in _STDLIB


@functools.lru_cache(maxsize=256)
def is_library_file(file: str) -> bool:
    """Whether source text belongs to Argand or Python, and not to a program."""
    if file.startswith("<frozen "):  # modules of the interpreter itself
        return True
    folders = [os.path.dirname(os.__file__)]
    for name, module in list(sys.modules.items()):
        if name.startswith("argand") and "." not in name and getattr(module, "__file__", None):
            folders.append(os.path.dirname(str(module.__file__)))
    if "site-packages" in file.removeprefix(folders[0]):
        folders = folders[1:]
    return any(file.startswith(folder + os.sep) for folder in folders)
