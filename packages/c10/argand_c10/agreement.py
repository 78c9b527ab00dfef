"""Decisions that all processes of a job should take alike, such as which of several kernels is the fastest.

Alone, a process decides for itself. A package that connects processes registers how they share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Sharer", "decide", "share_by"]


class Sharer(Protocol):
    def __call__(self, key: str, compute: Callable[[], Any]) -> Any:
        """What `compute` gave in the process that asked first for this key."""
        ...


_sharer: Sharer | None = None


def decide(key: str, compute: Callable[[], Any]) -> Any:
    """What `compute()` gives: here, or in the process that got to this decision first.

    Args:
        key: names the decision and all that it depends on; equal keys are the same question.
        compute: of this process; gives what JSON holds, and waits for no other process.
    """
    return compute() if _sharer is None else _sharer(key, compute)


def share_by(sharer: Sharer | None) -> None:
    """Take decisions together with other processes from now on; None: alone."""
    global _sharer
    _sharer = sharer
