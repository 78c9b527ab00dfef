"""The accelerator of this machine, whatever its kind: CUDA devices where there are any."""

from __future__ import annotations

import sys
from typing import Any

import argand_c10
from argand.import_paths import publish
from argand_c10 import cuda

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


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


def empty_cache() -> None:
    """Give back device memory that no tensor uses."""
    cuda.empty_cache()


def get_memory_info(device_index: Any = None) -> tuple[int, int]:
    """Free and total bytes of a device."""
    return cuda.mem_get_info(device_index)


def max_memory_allocated(device_index: Any = None) -> int:
    """The most bytes that tensors took on a device."""
    return cuda.max_memory_allocated(device_index)


def max_memory_reserved(device_index: Any = None) -> int:
    """The most bytes that were held of a device."""
    return cuda.max_memory_reserved(device_index)


def memory_allocated(device_index: Any = None) -> int:
    """Bytes that tensors take on a device."""
    return cuda.memory_allocated(device_index)


def memory_reserved(device_index: Any = None) -> int:
    """Bytes that are held of a device."""
    return cuda.memory_reserved(device_index)


def memory_stats(device_index: Any = None) -> Any:
    """The counters of a device's allocator."""
    return cuda.memory_stats(device_index)


def reset_peak_memory_stats(device_index: Any = None) -> None:
    """Begin anew with the most that was in use."""
    cuda.reset_peak_memory_stats(device_index)


current_device_idx = current_device_index
set_device_idx = set_device_index


class device_index(cuda.device):
    """Context manager inside of which a device is the current one; None or a negative index changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        super().__init__(device)


publish(__name__, {"memory": sys.modules[__name__]})
