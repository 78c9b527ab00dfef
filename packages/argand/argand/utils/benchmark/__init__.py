"""How long statements take: timers that warm up, choose how often to run, and compare."""

from __future__ import annotations

from argand.utils.benchmark.compare import Compare
from argand.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from argand.utils.benchmark.timer import Language, Timer, timer

__all__ = [
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
