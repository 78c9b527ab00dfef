"""Typed exceptions. All are `RuntimeError`s, so that a broad handler catches them too; a `DTypeError` is a `NotImplementedError` and a `TypeError`."""

from typing import Any

from argand_c10._C import (
    DeviceError,
    DTypeError,
    LinAlgError,
    OutOfMemoryError,
    ShapeError,
    Tensor,
)

__all__ = [
    "DTypeError",
    "DataDependentError",
    "DeviceError",
    "LinAlgError",
    "OutOfMemoryError",
    "ShapeError",
    "UnsupportedError",
    "require_tensors",
]


class UnsupportedError(RuntimeError):
    """Something that works on tensors with data, but not while a graph is built."""


class DataDependentError(UnsupportedError):
    """A Python value or a shape was asked for that depends on the elements of a tensor without data."""


_OVERRIDES = ("__argand_function__", "__torch_function__")


def require_tensors(function: str, **arguments: Any) -> None:
    """Raise TypeError for an argument that is neither a tensor nor an object that takes part in calls, as a proxy."""
    for position, (name, value) in enumerate(arguments.items(), 1):
        if not isinstance(value, Tensor) and not any(hasattr(type(value), n) for n in _OVERRIDES):
            raise TypeError(
                f"{function}(): argument '{name}' (position {position}) must be Tensor, "
                f"not {type(value).__name__}"
            )
