"""Data loading and other utilities."""

from __future__ import annotations

from argand.import_paths import submodules
from argand.utils import _pytree as _pytree
from argand.utils import checkpoint, data, dlpack, hooks
from argand.utils.swap import swap_tensors

_LATER = (
    "benchmark",
    "collect_env",
    "flop_counter",
    "model_zoo",
    "module_tracker",
    "tensorboard",
    "weak",
)
__all__ = ["checkpoint", "data", "dlpack", "hooks", "swap_tensors", *_LATER]

__getattr__ = submodules(__name__, *_LATER)
