"""What the measuring programs share: the processes of both libraries, rows of a report, and how they are printed."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from absl import app

from benchmarks.cases import Case
from benchmarks.processes import CaseError, Process, own_paths, take_turns

OURS = "argand"

# Bytes by which the same case's peak differs from run to run.
MEMORY_NOISE = 4 << 20


def peer_process(threads: int) -> tuple[Process | None, str]:
    """The peer's process, or None and why there is none.

    The peer lives in the virtual environment `ARGAND_PEER_PYTHON` names, else in the one that Bazel made.
    """
    python = os.environ.get("ARGAND_PEER_PYTHON", "")
    if python:
        return Process("torch", threads, python, []), ""
    from tools.build.extra_environment import add_to_path

    before = list(sys.path)
    reason = add_to_path("peer")
    site = [path for path in sys.path if path not in before]
    sys.path[:] = before
    if reason is not None:
        return None, reason
    return Process("torch", threads, sys.executable, site), ""


def start_processes(threads: int, peer_name: str) -> list[Process]:
    processes = [Process(OURS, threads, sys.executable, own_paths())]
    if peer_name != "none":
        peer, reason = peer_process(threads)
        if peer is None:
            print(f"no peer: {reason}\n")
        else:
            processes.append(peer)
    return [*processes, Process("copy", threads, sys.executable, own_paths())]


def measure(case: Case, processes: list[Process], seconds: float) -> dict[str, Any]:
    """One row of the report."""
    wanted = [p for p in processes if p.namespace != "copy" or case.traffic]
    times = take_turns(wanted, case.name, seconds)
    row: dict[str, Any] = {"case": case.name, "target": case.target, "times": times}
    if case.group:
        row["group"] = case.group
    if "torch" in times:
        row["ratio"] = times[OURS]["median"] / times["torch"]["median"]
        if not case.group:
            row["holds"] = row["ratio"] <= case.target
        if case.device == "cpu":
            row["memory_holds"] = times[OURS]["memory"] <= times["torch"]["memory"] + MEMORY_NOISE
    if case.traffic:
        row["bandwidth"] = case.traffic / times[OURS]["median"]
        row["copy_bandwidth"] = case.traffic / times["copy"]["median"]
        row["of_copy"] = row["bandwidth"] / row["copy_bandwidth"]
        row["of_copy_target"] = case.bandwidth_target
        row["holds"] = row.get("holds", True) and row["of_copy"] >= case.bandwidth_target
    return row


def measure_cases(
    cases: list[Case], processes: list[Process], seconds: float
) -> list[dict[str, Any]]:
    """Measures and prints each case; a case that fails is a row that says so."""
    rows: list[dict[str, Any]] = []
    for case in cases:
        try:
            rows.append(measure(case, processes, seconds))
        except CaseError as error:
            rows.append(
                {"case": case.name, "target": case.target, "holds": False, "error": str(error)}
            )
        print(render(rows[-1]), flush=True)
    means = group_means(rows)
    for row in means:
        print(f"{row['case']:<44}{row['ratio']:>8.2f}{row['target']:>8.2f}", flush=True)
    return rows + means


def group_means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each group of cases: the geometric mean of their ratios."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if "group" in row and "ratio" in row:
            groups.setdefault(row["group"], []).append(row)
    means = []
    for name, members in groups.items():
        ratio = statistics.geometric_mean(row["ratio"] for row in members)
        target = members[0]["target"]
        case = f"{name}, geometric mean of {len(members)}"
        means.append({"case": case, "target": target, "ratio": ratio, "holds": ratio <= target})
    return means


def micro(seconds: float) -> str:
    """Microseconds with three digits or more."""
    value = seconds * 1e6
    return f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def render_header(threads: int, versions: dict[str, str]) -> str:
    """Two lines: what is compared, and the columns."""
    names = [OURS, "torch"] if "torch" in versions else [OURS]
    libraries = ", ".join(f"{name} {version}" for name, version in versions.items())
    columns = "".join(f"{f'{name} min':>12} {'median':>10} {'max':>10}" for name in names)
    return (
        f"{processor()}, {threads} threads; {libraries}\n"
        f"{'microseconds a call':<44}{columns}" + ("   ratio  target" if len(names) == 2 else "")
    )


def print_verdict(rows: list[dict[str, Any]]) -> bool:
    """Prints how many targets hold; whether all do."""
    judged = [row[key] for row in rows for key in ("holds", "memory_holds") if key in row]
    if judged:
        print(f"{sum(judged)} of {len(judged)} targets hold")
    return all(judged)


def render(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['case']:<44}failed: {row['error']}"
    line = f"{row['case']:<44}"
    for name in (OURS, "torch"):
        if name in row["times"]:
            t = row["times"][name]
            line += f"{micro(t['min']):>12} {micro(t['median']):>10} {micro(t['max']):>10}"
    if "ratio" in row:
        judged = "group" not in row and row["ratio"] > row["target"]
        verdict = "   MISSED" if judged else ""
        line += f"{row['ratio']:>8.2f}{row['target']:>8.2f}{verdict}"
    if not row.get("memory_holds", True):
        ours, peer = (row["times"][name]["memory"] / 1e6 for name in (OURS, "torch"))
        line += f"\n  peak memory {ours:.0f} MB, the peer's {peer:.0f} MB   MISSED"
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


def describe(threads: int, versions: dict[str, str], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The report: where and when the rows were measured, and the rows."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "processor": processor(),
        "threads": threads,
        "versions": versions,
        "rows": rows,
    }


def choose(cases: Iterable[Case], pattern: str) -> list[Case]:
    """The cases whose name the regular expression finds.

    Raises:
        app.UsageError: where it finds none.
    """
    known = list(cases)
    chosen = [case for case in known if re.search(pattern, case.name)]
    if not chosen:
        names = ", ".join(case.name for case in known)
        raise app.UsageError(f"--filter={pattern} finds no case; there are: {names}")
    return chosen


def finish(
    described: dict[str, Any], name: str, out: str | None, *, partial: bool, strict: bool
) -> int:
    """Prints the verdict and writes the report; returns the program's status.

    `out` is by default benchmarks/results/<name>.json in the tree, which holds whole runs: a partial one is not written there.
    """
    all_hold = print_verdict(described["rows"])
    if partial and out is None:
        print("not written: a part was measured; name a file for it with --out")
    else:
        print(f"written: {write_report(described, name, out)}")
    return 1 if strict and not all_hold else 0


def write_report(report: dict[str, Any], name: str, out: str | None) -> Path:
    """Writes `out`, by default benchmarks/results/<name>.json in the tree; returns its path."""
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY", os.getcwd())
    path = Path(out or Path(root) / "benchmarks" / "results" / f"{name}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(report, indent=1) + "\n")
    temporary.replace(path)
    return path
