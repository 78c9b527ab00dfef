"""The accelerator of this machine, whatever its kind: CUDA devices where there are any."""

from __future__ import annotations

from typing import Any

import argand_c10
from argand_c10 import cuda

__all__ = [
    "current_accelerator", "current_device_index", "current_stream", "device_count", "is_available", "set_device_index",
    "set_stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether there is one."""
    return cuda.is_available()


def device_count() -> int:
    """How many devices it has."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> argand_c10.device | None:
    """The accelerator's device without an index; None where there is none."""
    return argand_c10.device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """The index of the current device."""
    return cuda.current_device()


def set_device_index(device: Any) -> None:
    """Make a device the current one."""
    cuda.set_device(device)


def current_stream(device: Any = None) -> Any:
    """The stream on which a device's work is queued."""
    return cuda.current_stream(device)


def set_stream(stream: Any) -> None:
    """Queue work on another stream."""
    cuda.set_stream(stream)


def synchronize(device: Any = None) -> None:
    """Wait until a device has done its work."""
    cuda.synchronize(device)
