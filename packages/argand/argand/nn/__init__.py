"""Modules, losses and functions of neural networks."""

# ruff: noqa: E402  (the layer's submodules go before this package's are imported)
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import argand_nn
from argand_c10.module_hooks import set_module_compiler
from argand_nn import *  # noqa: F403

# isort: split
from argand.import_paths import make_room, submodules

# This package's own submodules take the place of the layer's.
make_room(__name__, "functional", "init", "modules", "utils")
from argand.nn import _reduction as _reduction
from argand.nn import attention as attention
from argand.nn import common_types as common_types
from argand.nn import functional as functional  # type: ignore[no-redef]
from argand.nn import grad as grad
from argand.nn import init as init  # type: ignore[no-redef]
from argand.nn import modules as modules  # type: ignore[no-redef]
from argand.nn import parameter as parameter
from argand.nn import utils as utils  # type: ignore[no-redef]

__all__ = sorted(
    {*argand_nn.__all__, "functional", "grad", "init", "modules", "parameter", "utils"}
)


def _compile(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """The front-end's `compile`, loaded when a module is compiled."""
    compiled: Callable[..., Any] = importlib.import_module("argand.compiler").compile(
        function, *args, **kwargs
    )
    return compiled


set_module_compiler(_compile)


def __getattr__(name: str) -> Any:
    # Of a layer that is loaded when it is used.
    if name == "SyncBatchNorm":
        return importlib.import_module("argand.distributed").SyncBatchNorm
    return submodules(__name__, "parallel")(name)
