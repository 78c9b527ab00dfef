"""Typed exceptions. All are `RuntimeError`s, so that a broad handler catches them too."""

from argand_c10._C import DeviceError, DTypeError, LinAlgError, OutOfMemoryError, ShapeError

__all__ = [
    "DTypeError",
    "DataDependentError",
    "DeviceError",
    "LinAlgError",
    "OutOfMemoryError",
    "ShapeError",
    "UnsupportedError",
]


class UnsupportedError(RuntimeError):
    """Something that works on tensors with data, but not while a graph is built."""


class DataDependentError(UnsupportedError):
    """A Python value or a shape was asked for that depends on the elements of a tensor without data."""
