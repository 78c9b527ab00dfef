"""The benchmark of operators: every call runs, and the slowest come first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.operator_cases import CUDA, LARGE, OPERATOR_CASES, SMALL
from benchmarks.operators import slowest_first
from benchmarks.processes import own_paths

# Each call once, on the smaller inputs where it has a choice.
SMALL_CALLS = {case.statement: case for case in OPERATOR_CASES if case.device == "cpu"}.values()


def test_small_calls_have_large_ones():
    names = {case.name for case in OPERATOR_CASES}
    assert len(names) == len(OPERATOR_CASES)
    for size in (LARGE, CUDA):
        assert {f"{size}: {case.statement}" for case in OPERATOR_CASES} < names
    assert sum(name.startswith(SMALL) for name in names) > len(SMALL_CALLS) / 2


@pytest.mark.parametrize("case", SMALL_CALLS, ids=lambda case: case.name)
def test_call_runs(case):
    import argand

    eval(case.statement, case.set_up(argand))


def test_failures_and_slow_calls_come_first():
    failed, slow, fast, alone = {"error": ""}, {"ratio": 2.0}, {"ratio": 0.5}, {"case": "x"}
    assert slowest_first([alone, fast, failed, slow]) == [failed, slow, fast, alone]


def test_report_is_written(tmp_path: Path):
    out = tmp_path / "report.json"
    program = [sys.executable, "-m", "benchmarks.operators", "--peer=none", "--seconds=0"]
    done = subprocess.run(
        [*program, "--filter=small: x [+] y", f"--out={out}"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(own_paths())},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(out.read_text())["rows"]
    assert row["case"] == "small: x + y" and row["group"] == "small operators"
    assert row["times"]["argand"]["min"] > 0
    assert done.stdout.count("small: x + y") == 2
