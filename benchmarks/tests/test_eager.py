"""The benchmark program itself: every case runs, and the report says what was measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from absl import app

from benchmarks import report
from benchmarks.cases import CASES
from benchmarks.processes import CaseError, Process, Samples, own_paths, take_turns

# Those that a busy two-core machine runs in a moment.
SLOW = ("gemm", "16 M", "conv2d", "attention")
QUICK = [case for case in CASES if not any(word in case.name for word in SLOW)]


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.name)
def test_case_runs(case):
    import argand

    names = case.set_up(argand)
    exec(case.statement, names)
    exec(case.statement, names)


def test_processes_take_turns_and_survive_a_failing_case():
    process = Process("argand", 1, sys.executable, own_paths())
    copy = Process("copy", 1, sys.executable, own_paths())
    try:
        with pytest.raises(CaseError, match="StopIteration"):
            process.ask(prepare="no such case")
        with pytest.raises(CaseError, match="AssertionError"):
            process.ask(round=True)
        times = take_turns([process], "tiny add", 0, least_rounds=3)["argand"]
        assert times["rounds"] == 3
        assert 0 <= times["memory"] < 1 << 30
        assert 0 < times["min"] <= times["median"] <= times["max"] < 0.1
    finally:
        process.close()
        copy.close()
    assert process.process.returncode == 0


def test_summary_of_an_even_number_of_rounds():
    samples = Samples([4.0, 1.0, 2.0, 3.0])
    assert samples.summary() == {"min": 1.0, "median": 2.5, "max": 4.0, "rounds": 4}


def test_rows_say_what_was_missed():
    times = {"min": 1e-6, "median": 2e-6, "max": 3e-6, "rounds": 3}
    row = {"case": "add", "target": 0.6, "times": {"argand": times, "torch": times}, "ratio": 1.0}
    assert report.render(row).endswith("1.00    0.60   MISSED")
    row |= {
        "ratio": 0.5,
        "of_copy": 0.5,
        "of_copy_target": 0.8,
        "bandwidth": 1e9,
        "copy_bandwidth": 2e9,
    }
    first, second = report.render(row).split("\n")
    assert first.endswith("0.60")
    assert (
        second.strip() == "1.0 GB/s; a copy of the same traffic 2.0 GB/s: 50%, target 80%   MISSED"
    )


def test_groups_are_judged_by_their_mean():
    rows = [{"case": n, "target": 1.0, "group": "g", "ratio": r} for n, r in [("a", 0.5), ("b", 2)]]
    (mean,) = report.group_means([*rows, {"case": "c", "target": 1.0, "ratio": 9.0}])
    assert mean["case"] == "g, geometric mean of 2"
    assert mean["ratio"] == pytest.approx(1.0)
    assert mean["holds"] == (mean["ratio"] <= 1.0)


def test_a_part_is_chosen_and_not_written_over_a_whole_run(tmp_path, monkeypatch, capsys):
    assert [case.name for case in report.choose(CASES, "tiny add$")] == ["tiny add"]
    with pytest.raises(app.UsageError, match="--filter=nothing finds no case; there are: tiny add"):
        report.choose(CASES, "nothing")
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", str(tmp_path))
    described = {"rows": [{"holds": False}]}
    assert report.finish(described, "eager", None, partial=True, strict=True) == 1
    assert "not written" in capsys.readouterr().out and not list(tmp_path.iterdir())
    assert report.finish(described, "eager", None, partial=False, strict=False) == 0
    written = tmp_path / "benchmarks" / "results" / "eager.json"
    assert json.loads(written.read_text()) == described


def test_report_is_written(tmp_path: Path):
    out = tmp_path / "report.json"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.eager",
            "--peer=none",
            "--filter=tiny add$",
            "--seconds=0",
            f"--out={out}",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(own_paths())},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    (row,) = report["rows"]
    assert row["case"] == "tiny add" and "ratio" not in row
    assert row["times"]["argand"]["min"] > 0
    assert "tiny add" in done.stdout
