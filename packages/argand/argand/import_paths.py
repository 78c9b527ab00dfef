"""PyTorch's paths of modules that lie elsewhere here, as in `from argand.utils.data.dataset import Dataset`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

__all__ = ["make_room", "publish", "submodules"]


def make_room(package: str, *names: str) -> None:
    """Forget what `import *` brought under these names, so that importing them from `package` finds its own submodules."""
    for name in names:
        vars(sys.modules[package]).pop(name, None)


def submodules(package: str, *names: str) -> Callable[[str], ModuleType]:
    """A package's `__getattr__` that imports its submodules of these names at first use."""

    def load(name: str) -> ModuleType:
        if name in names:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load


def publish(package: str, modules: Mapping[str, Any]) -> None:
    """Make `package.name` importable for every name; `package` is the module that calls, and becomes the parent."""
    parent = sys.modules[package]
    for name, module in modules.items():
        sys.modules.setdefault(f"{package}.{name}", module)
        if not hasattr(parent, name):  # a function may have the name of its module
            setattr(parent, name, module)
