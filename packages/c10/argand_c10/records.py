"""Structured records: what the compiler did not do as the user might expect, why, and how to change it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from argand_c10 import logs
from argand_c10.fork import renew_in_child

Kind = Literal["graph_break", "recompile", "fallback", "cache", "perf_hint", "dynamic"]
_CHANNELS = {
    "graph_break": "graph_breaks",
    "recompile": "recompiles",
    "fallback": "perf_hints",
    "cache": "cache",
    "perf_hint": "perf_hints",
    "dynamic": "dynamic",
}


@dataclass(frozen=True, slots=True)
class Record:
    """One event.

    Attributes:
        kind: what sort of event it is.
        code: stable identifier, as in "GB001".
        message: what happened and why, in one sentence.
        fix: what the user can do about it.
        file, line: the user's line that caused it; None and 0 where no line did.
    """

    kind: Kind
    code: str
    message: str
    fix: str
    file: str | None = None
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        return f"{place}{self.kind} {self.code}: {self.message}" + (
            f"\n  fix: {self.fix}" if self.fix else ""
        )


_lock = threading.Lock()
renew_in_child(_lock)  # another thread may hold it
_collectors: list[list[Record]] = []


def emit(record: Record) -> None:
    """Hand a record to the log channel of its kind and to every open `collect()`, of whichever thread."""
    with _lock:
        for collector in _collectors:
            collector.append(record)
    logs.channel(_CHANNELS[record.kind]).info("%s", record)


@contextlib.contextmanager
def collect() -> Iterator[list[Record]]:
    """Gather the records emitted while the context is open, in order."""
    found: list[Record] = []
    with _lock:
        _collectors.append(found)
    try:
        yield found
    finally:
        with _lock:
            _collectors[:] = [c for c in _collectors if c is not found]
