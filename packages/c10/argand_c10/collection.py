"""Garbage collection and the compiler."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Without collections of reference cycles: a graph under construction is many young objects that live to the end, which
    the collector would walk again and again (a quarter of the time of a large graph), once at the end of every pause: one pause
    around several is better than each alone."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
