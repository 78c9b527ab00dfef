"""Compiled graphs: fused loops in C, one shared library a graph, kept on disk.

Importing this package is cheap; what compiles is loaded at first use, and a program that is on disk needs none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import argand_c10

argand_c10.check_abi("argand-inductor", built_for=2)

if TYPE_CHECKING:
    from argand_inductor._C import Program
    from argand_inductor.artifact.errors import CompilerError
    from argand_inductor.artifact.load import load
    from argand_inductor.artifact.make import make_program
    from argand_inductor.artifact.portable import export_cache, import_cache
    from argand_inductor.graph_compiler import backend, compile_graph, cudagraphs, load_backend
    from argand_inductor.graph_passes import register_graph_pass

__version__ = "0.1.0"
_NAMES = {
    "CompilerError": "argand_inductor.artifact.errors",
    "Program": "argand_inductor._C",
    "backend": "argand_inductor.graph_compiler",
    "compile_graph": "argand_inductor.graph_compiler",
    "cudagraphs": "argand_inductor.graph_compiler",
    "export_cache": "argand_inductor.artifact.portable",
    "import_cache": "argand_inductor.artifact.portable",
    "load_backend": "argand_inductor.graph_compiler",
    "load": "argand_inductor.artifact.load",
    "make_program": "argand_inductor.artifact.make",
    "register_graph_pass": "argand_inductor.graph_passes",
}
__all__ = [
    "CompilerError",
    "Program",
    "backend",
    "compile_graph",
    "cudagraphs",
    "export_cache",
    "import_cache",
    "load",
    "load_backend",
    "make_program",
    "register_graph_pass",
]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'argand_inductor' has no attribute {name!r}")
    value = getattr(importlib.import_module(_NAMES[name]), name)
    globals()[name] = value
    return value
