"""What was measured, and of what."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import argand_c10

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_UNITS: Final = {
    "ns": (1e-9, "nanosecond"),
    "us": (1e-6, "microsecond"),
    "ms": (1e-3, "millisecond"),
    "s": (1.0, "second"),
}
_FEW_RUNS = 4  # of fewer, a spread says little
_WIDE = 0.1  # a spread, beside the median, that is warned of


def select_unit(t: float) -> tuple[str, float]:
    """The unit that a time of `t` seconds is given in, and its seconds."""
    unit = next((u for u in ("s", "ms", "us") if t >= _UNITS[u][0]), "ns")
    return unit, _UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """A unit's name."""
    return _UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """`x` with `n` significant figures."""
    return float(f"{x:.{n}g}")


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements without repetitions, in order."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A block in which operators use `n` threads."""
    before = argand_c10.get_num_threads()
    argand_c10.set_num_threads(n)
    try:
        yield
    finally:
        argand_c10.set_num_threads(before)


@dataclass(frozen=True)
class TaskSpec:
    """What a timer runs, and how it is named."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, and the sub-label."""
        text = self.label or self.stmt
        return f"{text}: {self.sub_label}" if self.sub_label else text

    def setup_str(self) -> str:
        """The setup as a line, nothing where there is none."""
        if self.setup in ("", "pass"):
            return ""
        lines = self.setup.strip().splitlines()
        return "setup: " + (lines[0] if len(lines) == 1 else "\n  ".join(["", *lines]))

    def summarize(self) -> str:
        """All of it, as text."""
        return "\n".join(filter(None, [self.title, self.description, self.setup_str()]))


@dataclass
class Measurement:
    """Several times that a statement took.

    Attributes:
        number_per_run: how often it ran for each time.
        raw_times: seconds of each run.
        task_spec: what ran.
        metadata: whatever belongs to it.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None)

    def __getattr__(self, name: str) -> Any:
        if name != "task_spec" and name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds of one execution, by run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """Of the times."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """Of the times."""
        return statistics.fmean(self.times)

    def _quartiles(self) -> tuple[float, float]:
        if len(self.raw_times) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return low, high

    @property
    def iqr(self) -> float:
        """The range of the middle half of the times."""
        low, high = self._quartiles()
        return high - low

    @property
    def significant_figures(self) -> int:
        """How many figures of the median the spread of the times allows: from 1 to 5."""
        n, times = len(self.raw_times), sorted(self.times)
        reach = math.ceil(1.645 * math.sqrt(n) / 2)  # ranks around the median's, 90 of 100 times
        low, high = times[max(0, n // 2 - reach)], times[min(n - 1, n // 2 + reach)]
        if n < _FEW_RUNS or high <= low:
            return 1 if n < _FEW_RUNS else 5
        return min(5, max(1, math.floor(-math.log10((high - low) / self.median)) + 1))

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread so much that the median says little."""
        return not self.meets_confidence(_WIDE)

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Whether the range of the middle half is below a share of the median."""
        return len(self.raw_times) == 1 or self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """What ran."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """Where it ran."""
        return self.task_spec.env or "Unspecified env"

    @property
    def as_row_name(self) -> str:
        """The row of a table that it belongs to."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, of all its times; runs must have been equally long."""
        groups: dict[TaskSpec, list[Measurement]] = {}
        for m in measurements:
            groups.setdefault(m.task_spec, []).append(m)
        merged = []
        for spec, group in groups.items():
            if len({m.number_per_run for m in group}) > 1:
                raise AssertionError(f"Measurement.merge: got runs of different lengths of {spec}")
            times = [t for m in group for t in m.raw_times]
            merged.append(Measurement(group[0].number_per_run, times, spec))
        return merged

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        low, high = self._quartiles()
        runs = len(self.raw_times)
        times = [f"  {self.median / scale:.2f} {unit}"]
        if runs > 1:
            times = [f"  Median: {self.median / scale:.2f} {unit}"]
        if runs >= _FEW_RUNS:
            spread = f"{self.iqr / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})"
            times.append(f"  IQR:    {spread}")
        threads = self.task_spec.num_threads
        times.append(
            f"  {runs} measurement{'s' * (runs > 1)}, {self.number_per_run} runs{' per measurement' * (runs > 1)}, "
            f"{threads} thread{'s' * (threads > 1)}"
        )
        if self.has_warnings:
            times.append(
                f"  WARNING: the times spread by {self.iqr / self.median:.0%} of the median"
            )
        head = f"<{type(self).__module__}.Measurement object at {id(self):#x}>"
        return "\n".join([head, self.task_spec.summarize(), *times])
