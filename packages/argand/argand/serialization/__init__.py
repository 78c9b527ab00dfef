"""Saving and loading tensors: safetensors files, which never run code."""

from __future__ import annotations

from argand.serialization.checkpoint import load, save
from argand_aten.safetensors_format import FileFormatError

__all__ = ["FileFormatError", "load", "save"]
