"""Few generated tests are skipped, each with a reason that the registry states; who skips all counts with every test it would have."""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GENERATED = Path(os.environ.get("ARGAND_GENERATED_TESTS", "packages/aten/generated/tests"))


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(sys, "path", [str(GENERATED), *sys.path])
    return [importlib.import_module(file.stem) for file in sorted(GENERATED.glob("test_*.py"))]


def parameters(module: Any) -> Iterator[Any]:
    """Of every test of a module: what pytest would run it with."""
    for name, test in vars(module).items():
        if name.startswith("test_"):
            for mark in getattr(test, "pytestmark", ()):
                if mark.name == "parametrize":
                    yield from mark.args[1]


def test_every_operator_has_tests(modules: list[Any]) -> None:
    tested = {p.values[0].name for module in modules for p in parameters(module)}
    assert {c.name for module in modules for c in module.CASES} == tested


def test_fewer_than_three_in_a_hundred_are_skipped(modules: list[Any]) -> None:
    count, reasons = 0, Counter()
    for parameter in (p for module in modules for p in parameters(module)):
        count += 1
        reasons.update(m.kwargs["reason"] for m in parameter.marks if m.name == "skip")
    assert count > 9000
    assert all(reasons), reasons
    assert sum(reasons.values()) < 0.03 * count, reasons
