"""Argand's neural networks: modules, functions, initialisers, optimizers and data loading."""

from __future__ import annotations

from argand_nn import functional, init, modules, utils
from argand_nn.data_parallel import DataParallel
from argand_nn.modules import *  # noqa: F403
from argand_nn.parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

__version__ = "0.1.0"

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "utils",
    *modules.__all__,
]
