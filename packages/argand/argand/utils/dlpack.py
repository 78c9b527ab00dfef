"""Exchange of tensors without a copy."""

from __future__ import annotations

from typing import Any

from argand_c10 import Tensor, from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of the tensor's memory."""
    return tensor.__dlpack__()
