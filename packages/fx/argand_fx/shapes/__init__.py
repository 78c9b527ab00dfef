"""Shapes without data: symbolic sizes and their guards, fake tensors, and the builder that makes graphs of operator calls."""

from argand_c10.errors import DataDependentError, UnsupportedError
from argand_fx.shapes.builder import FakeTensorMode, GraphBuilder
from argand_fx.shapes.fake_tensor import FakeStorage, FakeTensor, SymSize
from argand_fx.shapes.from_tensor import from_tensor
from argand_fx.shapes.known import known_elements
from argand_fx.shapes.shape_env import LateGuardError, ShapeEnv, ShapeGuard
from argand_fx.shapes.simplify import simplify_symbols
from argand_fx.shapes.sym_int import SymBool, SymInt

__all__ = [
    "DataDependentError",
    "FakeStorage",
    "FakeTensor",
    "FakeTensorMode",
    "GraphBuilder",
    "LateGuardError",
    "ShapeEnv",
    "ShapeGuard",
    "SymBool",
    "SymInt",
    "SymSize",
    "UnsupportedError",
    "from_tensor",
    "known_elements",
    "simplify_symbols",
]
