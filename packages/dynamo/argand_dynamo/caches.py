"""Caches of the tracer that `reset` empties; modules that have one enter it here."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["clear_all", "clears"]

clears: list[Callable[[], None]] = []


def clear_all() -> None:
    """Empty them."""
    for clear in clears:
        clear()
