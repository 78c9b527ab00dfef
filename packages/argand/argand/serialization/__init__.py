"""Saving and loading tensors: safetensors files, which never run code."""

from __future__ import annotations

from typing import Any, TypeAlias

from argand.serialization.checkpoint import load, save
from argand.serialization.safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from argand_aten.safetensors_format import FileFormatError

__all__ = [
    "FileFormatError",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]

DEFAULT_PROTOCOL = 2  # what `save(pickle_protocol=)` takes by default
MAP_LOCATION: TypeAlias = Any  # what `load(map_location=)` takes: None, a device or its name, a mapping of names, a function
