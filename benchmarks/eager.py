"""Speed of eager operators, gradients and a training step, beside the peer's in one interleaved run.

    ./bazelw run //benchmarks:eager -- --peer torch

Prints a table (min, median and max of a call, the ratio of the medians and whether it meets its target) and writes it as
JSON. Each library has a process of its own; they take turns, so that a change of the machine's speed meets both.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import time
from pathlib import Path
from typing import Any

from absl import app, flags

from benchmarks.cases import CASES, Case
from benchmarks.processes import CaseError, Process, own_paths, take_turns

_PEER = flags.DEFINE_enum("peer", "torch", ["torch", "none"], "The library to compare with.")
_FILTER = flags.DEFINE_string(
    "filter", "", "Measure only cases whose name this regular expression finds."
)
_SECONDS = flags.DEFINE_float(
    "seconds", 1.0, "Time for each case and library, in seconds.", lower_bound=0
)
_THREADS = flags.DEFINE_integer("threads", 2, "Threads of each library.", lower_bound=1)
_OUT = flags.DEFINE_string(
    "out", None, "JSON file to write; by default benchmarks/results/eager.json in the tree."
)
_STRICT = flags.DEFINE_bool("strict", False, "End with status 1 where a target is missed.")

_OURS = "argand"


def peer_process(threads: int) -> tuple[Process | None, str]:
    """The peer's process, or None and why there is none.

    The peer lives in the virtual environment `ARGAND_PEER_PYTHON` names, else in the one that Bazel made.
    """
    python = os.environ.get("ARGAND_PEER_PYTHON", "")
    if python:
        return Process("torch", threads, python, []), ""
    from tools.build.peer import add_peer_to_path

    before = list(sys.path)
    reason = add_peer_to_path()
    site = [path for path in sys.path if path not in before]
    sys.path[:] = before
    if reason is not None:
        return None, reason
    return Process("torch", threads, sys.executable, site), ""


def measure(case: Case, processes: list[Process]) -> dict[str, Any]:
    """One row of the report."""
    wanted = [p for p in processes if p.namespace != "copy" or case.traffic]
    times = take_turns(wanted, case.name, _SECONDS.value)
    row: dict[str, Any] = {"case": case.name, "target": case.target, "times": times}
    if "torch" in times:
        row["ratio"] = times[_OURS]["median"] / times["torch"]["median"]
        row["holds"] = row["ratio"] <= case.target
    if case.traffic:
        row["bandwidth"] = case.traffic / times[_OURS]["median"]
        row["copy_bandwidth"] = case.traffic / times["copy"]["median"]
        row["of_copy"] = row["bandwidth"] / row["copy_bandwidth"]
        row["of_copy_target"] = case.bandwidth_target
        row["holds"] = row.get("holds", True) and row["of_copy"] >= case.bandwidth_target
    return row


def micro(seconds: float) -> str:
    """Microseconds with three digits or more."""
    value = seconds * 1e6
    return f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def render_header(peer: str) -> str:
    names = [_OURS, peer] if peer else [_OURS]
    columns = "".join(f"{f'{name} min':>12} {'median':>10} {'max':>10}" for name in names)
    return f"{'microseconds a call':<44}{columns}" + ("   ratio  target" if peer else "")


def render(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['case']:<44}failed: {row['error']}"
    line = f"{row['case']:<44}"
    for name in (_OURS, "torch"):
        if name in row["times"]:
            t = row["times"][name]
            line += f"{micro(t['min']):>12} {micro(t['median']):>10} {micro(t['max']):>10}"
    if "ratio" in row:
        verdict = "" if row["ratio"] <= row["target"] else "   MISSED"
        line += f"{row['ratio']:>8.2f}{row['target']:>8.2f}{verdict}"
    if "of_copy" in row:
        verdict = "" if row["of_copy"] >= row["of_copy_target"] else "   MISSED"
        line += (
            f"\n  {row['bandwidth'] / 1e9:.1f} GB/s; a copy of the same traffic {row['copy_bandwidth'] / 1e9:.1f} GB/s:"
            f" {row['of_copy']:.0%}, target {row['of_copy_target']:.0%}{verdict}"
        )
    return line


def processor() -> str:
    """The processor's name, where the system tells."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.*)$", info.read_text(), re.M) if info.exists() else None
    return found.group(1) if found else platform.processor()


def write_report(report: dict[str, Any]) -> Path:
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY", os.getcwd())
    path = Path(_OUT.value or Path(root) / "benchmarks" / "results" / "eager.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(report, indent=1) + "\n")
    temporary.replace(path)
    return path


def start_processes(threads: int) -> list[Process]:
    processes = [Process(_OURS, threads, sys.executable, own_paths())]
    if _PEER.value != "none":
        peer, reason = peer_process(threads)
        if peer is None:
            print(f"no peer: {reason}\n")
        else:
            processes.append(peer)
    return [*processes, Process("copy", threads, sys.executable, own_paths())]


def main(_: list[str]) -> int:
    cases = [case for case in CASES if re.search(_FILTER.value, case.name)]
    if not cases:
        print(
            f"--filter={_FILTER.value} finds no case; there are: {', '.join(c.name for c in CASES)}"
        )
        return 2
    processes = start_processes(_THREADS.value)
    versions = {p.namespace: p.version for p in processes if p.version}
    peer = "torch" if "torch" in versions else ""
    print(
        f"{processor()}, {_THREADS.value} threads; "
        + ", ".join(f"{n} {v}" for n, v in versions.items())
    )
    print(render_header(peer), flush=True)
    rows = []
    for case in cases:
        try:
            rows.append(measure(case, processes))
        except CaseError as error:
            rows.append(
                {"case": case.name, "target": case.target, "holds": False, "error": str(error)}
            )
        print(render(rows[-1]), flush=True)
    for process in processes:
        process.close()
    judged = [row for row in rows if "holds" in row]
    held = sum(row["holds"] for row in judged)
    if judged:
        print(f"{held} of {len(judged)} targets hold")
    report = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "processor": processor(),
        "threads": _THREADS.value,
        "versions": versions,
        "rows": rows,
    }
    print(f"written: {write_report(report)}")
    return 1 if _STRICT.value and held < len(judged) else 0


if __name__ == "__main__":
    app.run(main)
