"""What each stage of a compilation made, gathered for a report: off unless ARGAND_COMPILE_DEBUG or `enable` turns it on.

Stages call `add(stage, payload)`; whoever opened the compilation hands the whole to the listeners at its end.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from argand_c10 import metrics, records
from argand_c10.collection import gc_paused

# Stages in the order in which a report shows them, with what their payload is.
STAGES = {
    "graph": "a traced GraphModule",
    "guards": "a list of sentences",
    "joint_graph": "a GraphModule",
    "forward_graph": "a GraphModule",
    "backward_graph": "a GraphModule",
    "loop_ir": "text",
    "schedule": "a list of (step's name, the operators that it fuses, their (file, line) places)",
    "output_code": "a list of (name, C source)",
    "memory_plan": "text",
    "bytecode": "text",
}


@dataclass
class Compilation:
    """One function's way through the compiler. Times are in seconds."""

    name: str
    file: str
    line: int
    items: list[tuple[str, Any]] = field(default_factory=list)
    records: list[records.Record] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


_current: contextvars.ContextVar[Compilation | None] = contextvars.ContextVar(
    "argand_compilation", default=None
)
_listeners: list[Callable[[Compilation], None]] = []
_enabled = os.environ.get("ARGAND_COMPILE_DEBUG", "0") not in ("", "0")


def enable(on: bool = True) -> None:
    """Turn the gathering on or off for compilations that begin from now on."""
    global _enabled
    _enabled = on


def enabled() -> bool:
    """Whether a stage should make its payload; ask before costly ones."""
    return _enabled


def add(stage: str, payload: Any) -> None:
    """Attach what a stage made to the compilation under way in this context, if any."""
    if stage not in STAGES:
        raise ValueError(
            f"debug_trace.add: got stage {stage!r}, expected one of {', '.join(STAGES)}"
        )
    current = _current.get()
    if current is not None:
        current.items.append((stage, payload))


@contextlib.contextmanager
def compilation(name: str, file: str, line: int) -> Iterator[None]:
    """The frame around one compilation: gathers everything added inside; at the end every listener gets the `Compilation`.

    Garbage collection is paused meanwhile.
    """
    with gc_paused():
        if _enabled:
            with _gathered(name, file, line):
                yield
        else:
            yield


@contextlib.contextmanager
def _gathered(name: str, file: str, line: int) -> Iterator[None]:
    opened = Compilation(name, file, line)
    token = _current.set(opened)
    before, start = metrics.phase_times(), time.perf_counter()
    try:
        with records.collect() as found:
            yield
    finally:
        _current.reset(token)
        opened.seconds = time.perf_counter() - start
        opened.records = found
        opened.phases = {
            phase: spent - before.get(phase, 0.0)
            for phase, spent in metrics.phase_times().items()
            if spent > before.get(phase, 0.0)
        }
        for listener in list(_listeners):
            listener(opened)


def subscribe(listener: Callable[[Compilation], None]) -> None:
    """Call `listener` with every compilation that ends, once however often it is subscribed."""
    if listener not in _listeners:
        _listeners.append(listener)
