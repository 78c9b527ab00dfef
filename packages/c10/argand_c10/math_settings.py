"""What programs allow the numerical libraries of devices; packages with kernels listen, front-ends change it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from argand_c10.fork import renew_in_child

__all__ = ["MathSettings", "change", "current", "listen"]


@dataclass(frozen=True, slots=True)
class MathSettings:
    """The defaults are PyTorch's.

    Attributes:
        matmul_tf32: float32 matrix products may round their operands to TF32, 10 bits of mantissa.
        conv_tf32: float32 convolutions may.
        benchmark: each new convolution is measured in several ways, and the fastest one kept.
        deterministic: only ways to compute convolutions that give the same bits in every run are taken.
    """

    matmul_tf32: bool = False
    conv_tf32: bool = True
    benchmark: bool = False
    deterministic: bool = False


_lock = threading.RLock()
renew_in_child(_lock)  # another thread may hold it
_current = MathSettings()
_listeners: list[Callable[[MathSettings], Any]] = []


def current() -> MathSettings:
    """The settings as they are."""
    return _current


def change(**changes: bool) -> None:
    """Replace some of the settings, for the whole process; those who listen are told."""
    global _current
    with _lock:
        _current = replace(_current, **changes)
        for listener in _listeners:
            listener(_current)


def listen(listener: Callable[[MathSettings], Any]) -> None:
    """Call `listener` with the settings, now and whenever they change."""
    with _lock:
        _listeners.append(listener)
        listener(_current)
