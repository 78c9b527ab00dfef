"""`Parameter` and `Buffer`, where PyTorch users look for them."""

from __future__ import annotations

from argand_c10 import Buffer, Parameter

__all__ = ["Buffer", "Parameter"]
