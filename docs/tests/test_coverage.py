"""The coverage page: a row for every operator, and what it says of a few that are known."""

from __future__ import annotations

import re
from pathlib import Path

import argand_aten  # noqa: F401  (brings the operators)
from argand_c10 import operator_names

PAGE = Path("docs/coverage.md").read_text()
ROWS = {
    cells[0].strip("`"): cells[1:]
    for line in PAGE.splitlines()
    if line.startswith("| `") and (cells := [c.strip() for c in line.strip("| ").split(" | ")])
}


def test_rows() -> None:
    assert all(len(cells) == 6 and all(cells) for cells in ROWS.values())
    assert len(ROWS) > 300
    assert set(ROWS) <= set(operator_names())


def test_few_tests_are_skipped() -> None:
    tests, skipped = re.search(
        r"Of ([0-9,]+) generated tests the registry skips ([0-9]+)", PAGE
    ).groups()  # type: ignore[union-attr]
    assert int(tests.replace(",", "")) > 9000
    assert int(skipped) < 0.03 * int(tests.replace(",", ""))


def test_what_is_said() -> None:
    assert "compiled, not run" in PAGE
    assert ROWS["add"] == ["all", "all", "all", "b integral floating", "self, other", "fused"]
    cpu, cuda, hip, opencl, gradient, _ = ROWS["prod"]
    assert cpu == "all" and cuda == hip == opencl == "b integral floating" and gradient == "self"
    assert ROWS["transpose"][:3] == ["*view*"] * 3
    assert ROWS["mm"][2] == "-" and ROWS["mm"][1] != "-"
