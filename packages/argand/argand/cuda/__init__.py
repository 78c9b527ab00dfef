"""CUDA devices under the names of `torch.cuda`: devices, streams, events, memory, graphs, random numbers, `amp` and `nvtx`."""

from __future__ import annotations

import importlib
from typing import Any

from argand_c10 import cuda as _runtime
from argand_c10.cuda import *  # noqa: F403

__all__ = [*_runtime.__all__]


def __getattr__(name: str) -> Any:
    if name in ("amp", "nvtx"):
        return importlib.import_module(f"argand.cuda.{name}")
    if name == "make_graphed_callables":
        return importlib.import_module("argand.cuda.graphed").make_graphed_callables
    raise AttributeError(f"module 'argand.cuda' has no attribute {name!r}")
