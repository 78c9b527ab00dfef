"""Ahead-of-time autograd: functionalization, derivation, partitioning and the runtime of compiled graphs.

What compiles is imported at first use; loading a compiled graph from disk needs none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from argand_aot.compiled_graph import CompiledGraph, load

if TYPE_CHECKING:
    from argand_aot.compiler import EagerGraph, compile
    from argand_aot.eager_backend import aot_eager, load_aot_eager
    from argand_aot.values import UnsupportedGraph

__version__ = "0.1.0"
__all__ = [
    "CompiledGraph",
    "EagerGraph",
    "UnsupportedGraph",
    "aot_eager",
    "compile",
    "load",
    "load_aot_eager",
]
_MODULES = {
    "EagerGraph": "compiler",
    "UnsupportedGraph": "values",
    "aot_eager": "eager_backend",
    "compile": "compiler",
    "load_aot_eager": "eager_backend",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'argand_aot' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"argand_aot.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
