"""CUDA devices under the names of `torch.cuda`: devices, streams, events, memory, graphs, random numbers, `amp` and `nvtx`."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from argand.import_paths import publish as _publish
from argand_c10 import cuda as _runtime
from argand_c10.cuda import *  # noqa: F403

__all__ = [*_runtime.__all__]

_OLD_NAMES = {
    "max_memory_cached": "max_memory_reserved",
    "memory_cached": "memory_reserved",
    "reset_max_memory_cached": "reset_peak_memory_stats",
}


def ipc_collect() -> None:
    """Free memory that other processes have left: none is shared with them, so there is nothing to do."""


def __getattr__(name: str) -> Any:
    if name in ("amp", "comm", "memory", "nvtx", "random", "streams"):
        return importlib.import_module(f"argand.cuda.{name}")
    if name == "make_graphed_callables":
        return importlib.import_module("argand.cuda.graphed").make_graphed_callables
    if name == "_initialized":
        return _runtime.is_initialized()
    if name in _OLD_NAMES:
        return getattr(_runtime, _OLD_NAMES[name])
    if name.endswith("Storage"):
        storages = importlib.import_module("argand_aten._typed_storage").cuda_storages
        if name in storages:
            return storages[name]
    if name.endswith("Tensor"):
        types = importlib.import_module("argand_aten._tensor_types").cuda_types
        if name in types:
            return types[name]
    raise AttributeError(f"module 'argand.cuda' has no attribute {name!r}")


_publish(__name__, {"graphs": sys.modules[__name__]})
