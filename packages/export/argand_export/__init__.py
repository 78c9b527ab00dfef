"""Programs without Python: a module traced into one functional graph, saved, loaded, and compiled ahead of time.

Importing this package is cheap, and a packaged program needs neither the tracer nor the compiler: they are loaded at first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import argand_c10

argand_c10.check_abi("argand-export", built_for=2)

from argand_export.dims import Dim, dims  # noqa: E402  (the ABI is checked first)
from argand_export.tree import register_dataclass, register_pytree_node  # noqa: E402

if TYPE_CHECKING:
    from argand_export.constraints import ConstraintViolationError
    from argand_export.files import load, save
    from argand_export.package_writer import package
    from argand_export.packaged import PackagedProgram, RuntimeFiles, load_package, runtime_files
    from argand_export.program import CallSpec, ExportedProgram, TensorSpec
    from argand_export.roots import Range
    from argand_export.signature import (
        ExportGraphSignature,
        InputKind,
        InputSpec,
        OutputKind,
        OutputSpec,
    )
    from argand_export.trace import export

__version__ = "0.1.0"

_NAMES = {
    "CallSpec": "program",
    "ConstraintViolationError": "constraints",
    "ExportGraphSignature": "signature",
    "ExportedProgram": "program",
    "InputKind": "signature",
    "InputSpec": "signature",
    "OutputKind": "signature",
    "OutputSpec": "signature",
    "PackagedProgram": "packaged",
    "Range": "roots",
    "RuntimeFiles": "packaged",
    "TensorSpec": "program",
    "export": "trace",
    "load": "files",
    "load_package": "packaged",
    "package": "package_writer",
    "runtime_files": "packaged",
    "save": "files",
}
__all__ = [
    "CallSpec",
    "ConstraintViolationError",
    "Dim",
    "ExportGraphSignature",
    "ExportedProgram",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "PackagedProgram",
    "Range",
    "RuntimeFiles",
    "TensorSpec",
    "dims",
    "export",
    "load",
    "load_package",
    "package",
    "register_dataclass",
    "register_pytree_node",
    "runtime_files",
    "save",
]


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'argand_export' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"argand_export.{_NAMES[name]}"), name)
    globals()[name] = value
    return value
