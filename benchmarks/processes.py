"""The measuring processes, and how they take turns: at any time one works and the others wait."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).absolute().parents[1]

# Between turns: threads of the last process that still spin go to sleep.
PAUSE_SECONDS = 0.01


class CaseError(Exception):
    """The case failed in that process; the process lives on."""


class Process:
    """A `benchmarks.worker` and the pipe to it."""

    def __init__(self, namespace: str, threads: int, python: str, paths: list[str]) -> None:
        self.namespace, self.python, self.paths = namespace, python, paths
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *paths]),
            "OMP_NUM_THREADS": str(threads),
            "MKL_NUM_THREADS": str(threads),
            "ARGAND_NUM_THREADS": str(threads),
        }
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", namespace, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.version = str(self._read()["version"])

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"benchmarks.worker {self.namespace}: ended with status {self.process.wait()}; see its messages above"
            )
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise CaseError(f"{self.namespace}: {reply['error']}")
        return reply

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Samples:
    """Seconds a call, one a round."""

    seconds: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        self.seconds.append(value)

    def summary(self) -> dict[str, float]:
        ordered = sorted(self.seconds)
        middle = len(ordered) // 2
        median = (
            ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
        )
        return {"min": ordered[0], "median": median, "max": ordered[-1], "rounds": len(ordered)}


def take_turns(
    processes: list[Process], case: str, seconds: float, least_rounds: int = 7
) -> dict[str, dict[str, float]]:
    """Measures `case` in every process, in alternating rounds for about `seconds` each; summaries by namespace.

    `memory`: bytes of the process at its peak above those before the case.
    """
    samples = {p.namespace: Samples() for p in processes}
    memory = {}
    try:
        for process in processes:
            memory[process.namespace] = process.ask(prepare=case)["memory"]
        begin, rounds = time.perf_counter(), 0
        while rounds < least_rounds or time.perf_counter() - begin < seconds * len(processes):
            # Every other round goes backwards, so that none is always first.
            for process in processes if rounds % 2 == 0 else processes[::-1]:
                time.sleep(PAUSE_SECONDS)
                samples[process.namespace].add(process.ask(round=True)["seconds"])
            rounds += 1
    finally:
        for process in processes:
            process.ask(release=True)
    return {name: {**s.summary(), "memory": memory[name]} for name, s in samples.items()}


def own_paths() -> list[str]:
    """Where this process finds its packages."""
    return [os.path.abspath(path) for path in sys.path if path]
