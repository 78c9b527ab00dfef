"""Counters and phase times of the compiler, for reports, tests and benchmarks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator

from argand_c10.fork import renew_in_child

_lock = threading.Lock()
renew_in_child(_lock)  # another thread may hold it
_counts: Counter[str] = Counter()
_seconds: dict[str, float] = {}


def count(name: str, n: int = 1) -> None:
    """Add `n` to the counter `name`."""
    with _lock:
        _counts[name] += n


def counters() -> dict[str, int]:
    """A copy of all counters."""
    with _lock:
        return dict(_counts)


@contextlib.contextmanager
def timed(phase: str) -> Iterator[None]:
    """Add the wall time spent inside to the phase; phases may nest, each counts its own whole time."""
    start = time.perf_counter()
    try:
        yield
    finally:
        spent = time.perf_counter() - start
        with _lock:
            _seconds[phase] = _seconds.get(phase, 0.0) + spent


def phase_times() -> dict[str, float]:
    """Seconds by phase, in the order in which phases first ended."""
    with _lock:
        return dict(_seconds)


def reset() -> None:
    """Set all counters and times to zero."""
    with _lock:
        _counts.clear()
        _seconds.clear()
