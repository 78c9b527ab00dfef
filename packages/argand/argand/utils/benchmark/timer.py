"""`Timer`: runs a statement until its time is known."""

from __future__ import annotations

import enum
import timeit
from collections.abc import Callable
from typing import Any

import argand
from argand.utils.benchmark.measurement import Measurement, TaskSpec, set_torch_threads
from argand_c10 import cuda

__all__ = ["Language", "Timer", "timer"]


def timer() -> float:
    """Seconds of a clock, when CUDA devices have done their work."""
    if cuda.is_available() and cuda.is_initialized():
        cuda.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """What statements are written in."""

    PYTHON = 0


class Timer:
    """Measures how long a statement takes: warmed up, and with as many threads as are asked for.

    Args:
        stmt: the statement.
        setup: what runs once before.
        global_setup: for statements of other languages; must be "".
        timer: gives seconds.
        globals: the statement's names; `torch` is this package.
        label, sub_label, description, env: name the result; of a table, its title, row, column and group.
        num_threads: threads of operators.
        language: Python.

    Raises:
        ValueError: for other languages.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if language not in (Language.PYTHON, "py", "python") or global_setup:
            raise ValueError(
                f"Timer: got language {language!r}, expected Python without global_setup"
            )
        names = {"torch": argand, "argand": argand, **(globals or {})}
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=names)

    def _run(self, number: int) -> float:
        # A clock may not notice what is very short.
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Run it `number` times at once, after a hundredth of them."""
        with set_torch_threads(self._task_spec.num_threads):
            self._run(max(number // 100, 2))
            return Measurement(number, [self._run(number)], self._task_spec)

    def _block(self, seconds: float) -> int:
        """How many executions take at least `seconds`."""
        number = 1
        while True:
            took = self._run(number)
            if took >= seconds or number >= 10**9:
                return number
            number *= 10

    def _until(
        self,
        enough: Callable[[Measurement, float], bool],
        block: float,
        callback: Callable[[int, float], Any] | None,
    ) -> Measurement:
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(block)
            result = Measurement(number, [], self._task_spec)
            total = 0.0
            while not result.raw_times or not enough(result, total):
                took = self._run(number)
                if callback is not None:
                    callback(number, took)
                result.raw_times.append(took)
                total += took
        return result

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Run it in blocks that are long beside the clock, until `min_run_time` seconds have passed.

        Args:
            callback: gets the executions and seconds of each block.
            min_run_time: seconds.
        """
        return self._until(
            lambda result, total: total >= min_run_time, min_run_time / 1000, callback
        )

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """As `blocked_autorange`, until the middle half of the times lies within a share of the median.

        Args:
            threshold: the share.
            min_run_time, max_run_time: seconds that pass at least and at most.
            callback: gets the executions and seconds of each block.
        """

        def enough(result: Measurement, total: float) -> bool:
            settled = len(result.raw_times) > 3 and result.meets_confidence(threshold)
            return total >= max_run_time or (total >= min_run_time and settled)

        return self._until(enough, min_run_time / 10, callback)
