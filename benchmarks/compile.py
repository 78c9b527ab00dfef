"""Speed of compiled programs, of compilation and of warm starts, beside the peer's `torch.compile` in one interleaved run.

    ./bazelw run //benchmarks:compile -- --peer torch

Steady speed is measured as by //benchmarks:eager. What happens once in a process (cold compilation, warm start, tracing) is
measured in fresh processes that take turns; a cold one has an empty cache of its own, a warm one the cache of the cold one.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from absl import app, flags

from benchmarks import report
from benchmarks.compile_cases import COMPILED_CASES
from benchmarks.processes import ROOT, own_paths

_PEER = flags.DEFINE_enum("peer", "torch", ["torch", "none"], "The library to compare with.")
_FILTER = flags.DEFINE_string(
    "filter", "", "Measure only what has a name that this regular expression finds."
)
_SECONDS = flags.DEFINE_float(
    "seconds", 2.0, "Time for each steady case and library, in seconds.", lower_bound=0
)
_REPEATS = flags.DEFINE_integer(
    "repeats", 3, "Fresh processes for each one-time measurement and library.", lower_bound=1
)
_THREADS = flags.DEFINE_integer("threads", 2, "Threads of each library.", lower_bound=1)
_OUT = flags.DEFINE_string(
    "out", None, "JSON file to write; by default benchmarks/results/compile.json in the tree."
)
_STRICT = flags.DEFINE_bool("strict", False, "End with status 1 where a target is missed.")


@dataclass(frozen=True)
class Library:
    """How to start a fresh process of a library."""

    namespace: str
    python: str
    paths: tuple[str, ...]

    def run(self, measurement: str, cache: str) -> dict[str, Any]:
        """One measurement of `compile_once` in a fresh process whose caches are in `cache`."""
        threads = str(_THREADS.value)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *self.paths]),
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "ARGAND_NUM_THREADS": threads,
            "ARGAND_CACHE_DIR": cache,
            "TORCHINDUCTOR_CACHE_DIR": cache,
        }
        done = subprocess.run(
            [self.python, "-m", "benchmarks.compile_once", self.namespace, threads, measurement],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"{self.namespace}, {measurement}: ended with status {done.returncode}"
            )
        result: dict[str, Any] = json.loads(done.stdout)
        return result


def summary(values: list[float]) -> dict[str, float]:
    return {
        "min": min(values),
        "median": statistics.median(values),
        "max": max(values),
        "rounds": len(values),
    }


def cold_and_warm(
    measurement: str, libraries: list[Library], repeats: int
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Results by library, "cold" and "warm": each cold process has a new cache, which a warm one then uses."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {
        library.namespace: {"cold": [], "warm": []} for library in libraries
    }
    for k in range(repeats):
        for library in libraries if k % 2 == 0 else libraries[::-1]:
            with tempfile.TemporaryDirectory() as cache:
                for state in ("cold", "warm"):
                    found[library.namespace][state].append(library.run(measurement, cache))
    return found


def one_time_row(
    name: str, target: float, found: dict[str, dict[str, list[dict[str, Any]]]], state: str
) -> dict[str, Any]:
    times = {n: summary([r["seconds"] for r in states[state]]) for n, states in found.items()}
    row: dict[str, Any] = {"case": name, "target": target, "times": times}
    if "torch" in times:
        row["ratio"] = times[report.OURS]["median"] / times["torch"]["median"]
        row["holds"] = row["ratio"] <= target
    return row


def against_peer(libraries: list[Library]) -> list[dict[str, Any]]:
    """Cold compilation, warm start and tracing."""
    rows = []
    if re.search(_FILTER.value, "GPT: cold compilation, warm start"):
        found = cold_and_warm("gpt_first_step", libraries, _REPEATS.value)
        rows.append(one_time_row("GPT: first step, cold", 0.2, found, "cold"))
        rows.append(one_time_row("GPT: first step, warm", 0.5, found, "warm"))
        counts = found[report.OURS]["warm"][-1]["counts"]
        rows.append(
            fact_row("GPT: compiler runs of a warm start", counts.get("compiler_runs", 0), 0)
        )
    if re.search(_FILTER.value, "ResNet-50: tracing"):
        found = cold_and_warm("trace_resnet", libraries, _REPEATS.value)
        rows.append(one_time_row("ResNet-50: tracing", 0.6, found, "cold"))
    return rows


def fact_row(name: str, value: float, limit: float) -> dict[str, Any]:
    """A figure of ours alone, with its limit."""
    return {"case": name, "value": value, "limit": limit, "holds": value <= limit}


def our_facts(ours: Library) -> list[dict[str, Any]]:
    """What has a limit of its own rather than one relative to the peer."""
    rows = []
    if re.search(_FILTER.value, "break-free start"):
        warm = cold_and_warm("break_free_start", [ours], _REPEATS.value)[ours.namespace]["warm"]
        seconds = statistics.median(r["seconds"] for r in warm)
        rows.append(fact_row("break-free function, warm start: seconds", seconds, 0.3))
        for counter in ("traces", "codegen_runs", "compiler_runs"):
            worst = max(r["counts"].get(counter, 0) for r in warm)
            rows.append(fact_row(f"break-free function, warm start: {counter}", worst, 0))
        sympy = max(int(r["sympy"]) for r in warm)
        rows.append(fact_row("break-free function, warm start: imports of sympy", sympy, 0))
    if re.search(_FILTER.value, "48 blocks"):
        one, many = (
            cold_and_warm(m, [ours], _REPEATS.value)[ours.namespace]["cold"]
            for m in ("one_block", "blocks_48")
        )
        ratio = statistics.median(r["seconds"] for r in many) / statistics.median(
            r["seconds"] for r in one
        )
        rows.append(fact_row("48 equal blocks, times one block's compilation", ratio, 1.5))
    if re.search(_FILTER.value, "30 lengths"):
        found = cold_and_warm("sequence_lengths", [ours], 1)[ours.namespace]["cold"][0]
        rows.append(fact_row("30 sequence lengths: compilations", found["counts"]["traces"], 2))
    return rows


def render(row: dict[str, Any]) -> str:
    if "value" not in row:
        return report.render(row)
    verdict = "" if row["holds"] else "   MISSED"
    return f"{row['case']:<52} {row['value']:.3g} (limit {row['limit']:g}){verdict}"


def main(_: list[str]) -> int:
    processes = report.start_processes(_THREADS.value, _PEER.value)
    versions = {p.namespace: p.version for p in processes if p.version}
    libraries = [Library(report.OURS, sys.executable, tuple(own_paths()))]
    libraries += [
        Library("torch", p.python, tuple(p.paths)) for p in processes if p.namespace == "torch"
    ]
    print(report.render_header(_THREADS.value, versions), flush=True)
    cases = [case for case in COMPILED_CASES if re.search(_FILTER.value, case.name)]
    rows = report.measure_cases(cases, processes, _SECONDS.value)
    for process in processes:
        process.close()
    once = against_peer(libraries)
    print("\n".join(map(render, once)), flush=True)
    facts = our_facts(libraries[0])
    print("\n".join(map(render, facts)), flush=True)
    rows += once + facts
    described = report.describe(_THREADS.value, versions, rows)
    return report.finish(
        described, "compile", _OUT.value, partial=bool(_FILTER.value), strict=_STRICT.value
    )


if __name__ == "__main__":
    app.run(main)
