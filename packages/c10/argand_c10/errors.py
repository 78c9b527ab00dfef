"""Typed exceptions. All are `RuntimeError`s, so that a broad handler catches them too."""

from argand_c10._C import DeviceError, DTypeError, OutOfMemoryError, ShapeError

__all__ = ["DTypeError", "DeviceError", "OutOfMemoryError", "ShapeError"]
