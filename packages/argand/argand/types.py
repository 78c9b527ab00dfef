"""Types for annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

import argand_c10

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = argand_c10.device | str | int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[Any]
Storage: TypeAlias = argand_c10.UntypedStorage
_int: TypeAlias = int
_float: TypeAlias = float
_bool: TypeAlias = bool
_dtype: TypeAlias = argand_c10.dtype
_device: TypeAlias = argand_c10.device
_size: TypeAlias = argand_c10.Size | list[int] | tuple[int, ...] | Sequence[int]
