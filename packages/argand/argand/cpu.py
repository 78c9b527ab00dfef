"""The CPU as a device: one, always there, with nothing to wait for; its allocator's counters, and `amp`."""

from __future__ import annotations

import contextlib
from typing import Any

from argand import cpu_amp as _amp
from argand.import_paths import publish as _publish
from argand.streams import HostEvent as Event
from argand.streams import HostStream as Stream
from argand_c10.cpu import *  # noqa: F403
from argand_c10.cpu import __all__ as _allocator

__all__ = [
    *_allocator,
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """The CPU's name."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is one CPU device."""


def synchronize(device: Any = None) -> None:
    """Nothing: CPU operators are done when they return."""


def current_stream(device: Any = None) -> Stream:
    """The stream of the CPU's work, of which there is one."""
    return _stream


class StreamContext(contextlib.nullcontext[Any]):
    """A block with a stream, which changes nothing."""

    def __init__(self, stream: Any) -> None:
        super().__init__()


def stream(stream: Any) -> StreamContext:
    """A block with a stream, which changes nothing."""
    return StreamContext(stream)


_stream = Stream()

_publish(__name__, {"amp": _amp})
_publish(f"{__name__}.amp", dict.fromkeys(("autocast_mode", "grad_scaler"), _amp))
