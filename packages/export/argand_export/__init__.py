"""Programs without Python: a module traced into one functional graph, saved, loaded, and compiled ahead of time."""

from argand_export.constraints import ConstraintViolationError, Range
from argand_export.dims import Dim, dims
from argand_export.files import load, save
from argand_export.program import CallSpec, ExportedProgram, TensorSpec
from argand_export.signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
)
from argand_export.trace import export

__version__ = "0.1.0"

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
    "Range",
    "TensorSpec",
    "dims",
    "export",
    "load",
    "save",
]
