"""PyTorch's paths of modules that lie elsewhere here, as in `from argand.utils.data.dataset import Dataset`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["publish"]


def publish(package: str, modules: Mapping[str, Any]) -> None:
    """Make `package.name` importable for every name; `package` is the module that calls, and becomes the parent."""
    parent = sys.modules[package]
    for name, module in modules.items():
        sys.modules.setdefault(f"{package}.{name}", module)
        if not hasattr(parent, name):  # a function may have the name of its module
            setattr(parent, name, module)
