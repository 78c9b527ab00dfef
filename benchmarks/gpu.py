"""Checks and times a GPU: kernels, compiled programs and GPT-2's training beside the peer, in one run.

    python3 -m benchmarks.gpu --out=gpu.json

Runs where Argand's wheels, NVIDIA's libraries and the peer are installed for one interpreter. Steady speed is measured as by
//benchmarks:eager, with the device synchronized at the end of each round; training runs in fresh processes that take turns.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from absl import app, flags

import argand
from benchmarks import report
from benchmarks.gpu_cases import GPU_CASES
from benchmarks.processes import ROOT, Process, own_paths

_FILTER = flags.DEFINE_string(
    "filter", "", "Measure only what has a name that this regular expression finds."
)
_SECONDS = flags.DEFINE_float(
    "seconds", 0.5, "Time for each steady case and library, in seconds.", lower_bound=0
)
_OUT = flags.DEFINE_string(
    "out", None, "JSON file to write; by default benchmarks/results/gpu.json in the tree."
)
_STRICT = flags.DEFINE_bool("strict", False, "End with status 1 where a target is missed.")

# Largest ratio to the peer's figure, by mode.
_GPT2_TARGETS = {
    "eager": {"seconds": 1.2, "peak_bytes": 1.1},
    "compiled": {"seconds": 1.2, "peak_bytes": 1.1, "first": 0.5},
}
_LABELS = {
    "seconds": "step, seconds",
    "peak_bytes": "peak memory, bytes",
    "first": "first step, cold, seconds",
}
# Of the mean of the last ten losses, relative: two runs of the peer in bfloat16 differ by about this.
LOSS_NOISE = 0.02


def train(namespace: str, mode: str) -> dict[str, Any]:
    """One training run of `gpu_once` in a fresh process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *own_paths()]),
            "ARGAND_CACHE_DIR": cache,
            "TORCHINDUCTOR_CACHE_DIR": cache,
            "TRITON_CACHE_DIR": str(Path(cache) / "triton"),
        }
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.gpu_once", namespace, mode],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(f"GPT-2, {namespace}, {mode}: ended with status {done.returncode}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def gpt2_rows() -> list[dict[str, Any]]:
    """Time, memory and compilation by mode, and how far the losses lie apart."""
    rows: list[dict[str, Any]] = []
    for mode, targets in _GPT2_TARGETS.items():
        name = f"GPT-2 124 M, {mode}"
        if not re.search(_FILTER.value, name):
            continue
        try:
            runs = {namespace: train(namespace, mode) for namespace in (report.OURS, "torch")}
        except RuntimeError as error:
            rows.append({"case": name, "target": 0.0, "holds": False, "error": str(error)})
            continue
        ours, peer = runs[report.OURS], runs["torch"]
        for key, target in targets.items():
            ratio = ours[key] / peer[key]
            rows.append(
                {
                    "case": f"{name}: {_LABELS[key]}",
                    "argand": ours[key],
                    "torch": peer[key],
                    "value": ratio,
                    "limit": target,
                    "holds": ratio <= target,
                }
            )
        last = [statistics.mean(run["losses"][-10:]) for run in (ours, peer)]
        apart = abs(last[0] - last[1]) / last[1]
        rows.append(
            {
                "case": f"{name}: losses apart, relative",
                "argand": ours["losses"],
                "torch": peer["losses"],
                "value": apart,
                "limit": LOSS_NOISE,
                "holds": apart <= LOSS_NOISE,
            }
        )
    return rows


def render(row: dict[str, Any]) -> str:
    if "value" not in row:
        return report.render(row)
    figures = "".join(
        f"  {name} {row[name]:.4g}"
        for name in (report.OURS, "torch")
        if not isinstance(row[name], list)
    )
    verdict = "" if row["holds"] else "   MISSED"
    return f"{row['case']:<52} {row['value']:.3g} (limit {row['limit']:g}){figures}{verdict}"


def main(_: list[str]) -> int:
    processes = [Process(name, 1, sys.executable, own_paths()) for name in (report.OURS, "torch")]
    versions = {p.namespace: p.version for p in processes}
    print(report.render_header(1, versions), flush=True)
    cases = [case for case in GPU_CASES if re.search(_FILTER.value, case.name)]
    rows = report.measure_cases(cases, processes, _SECONDS.value)
    for process in processes:
        process.close()
    training = gpt2_rows()
    print("\n".join(map(render, training)), flush=True)
    rows += training
    described = {"device": argand.cuda.get_device_name(), **report.describe(1, versions, rows)}
    return report.finish(
        described, "gpu", _OUT.value, partial=bool(_FILTER.value), strict=_STRICT.value
    )


if __name__ == "__main__":
    app.run(main)
