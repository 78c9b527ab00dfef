"""Data loading and other utilities."""

from __future__ import annotations

from argand.import_paths import submodules
from argand.utils import _pytree as _pytree
from argand.utils import checkpoint, data, dlpack, hooks

__all__ = ["checkpoint", "data", "dlpack", "hooks", "model_zoo"]

__getattr__ = submodules(__name__, "model_zoo")
