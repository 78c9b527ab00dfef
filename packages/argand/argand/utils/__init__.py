"""Data loading and other utilities."""

from __future__ import annotations

from argand.utils import _pytree as _pytree
from argand.utils import checkpoint, data, dlpack, hooks

__all__ = ["checkpoint", "data", "dlpack", "hooks"]
