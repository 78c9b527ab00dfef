"""Saving and loading tensors: safetensors files, which never run code."""

from __future__ import annotations

from typing import Any, TypeAlias

from argand.serialization.checkpoint import load, save
from argand_aten.safetensors_format import FileFormatError

__all__ = ["FileFormatError", "load", "save"]

MAP_LOCATION: TypeAlias = Any  # what `load(map_location=)` takes: None, a device or its name, a mapping of names, a function
