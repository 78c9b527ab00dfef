"""Operators without kernels of a backend are known from the registry, through bodies and through the index, and their tests say so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.codegen import index, loader
from tools.codegen.emit_tests import emit_family_tests
from tools.codegen.lacking import lacking
from tools.codegen.runtime import optest, under_test
from tools.codegen.tests.support import load_text, registry

SOLVERS = """\
- op: factor(Tensor self) -> Tensor
  kind: opaque
  kernel: {cpu: factor}
  shape: return self.shape
  grad: none
  samples: [{args: ["T(2,2)"]}]
  doc: Only on the CPU.
- op: move(Tensor self) -> Tensor
  kind: opaque
  kernel: {cpu: move, cuda: move}
  shape: return self.shape
  grad: none
  samples: [{args: ["T(2,2)"]}]
  doc: On both.
"""
USERS = """\
- op: solve(Tensor self, int times) -> Tensor
  kind: composite
  body: |
    if times == 0:
        return move(self)
    return factor(self)
  samples: [{args: ["T(2,2)", 1]}]
  doc: Calls it sometimes.
- op: solve_twice(Tensor self) -> Tensor
  kind: composite
  body: return solve(move(self), 2)
  samples: [{args: ["T(2,2)"]}]
  doc: Calls what calls it.
- op: move_twice(Tensor self) -> Tensor
  kind: composite
  body: return move(move(self))
  samples: [{args: ["T(2,2)"]}]
  doc: Never calls it.
"""
FOUND = {
    "factor": {"cuda": ("factor",)},
    "move": {},
    "solve": {"cuda": ("factor",)},
    "solve_twice": {"cuda": ("factor",)},
    "move_twice": {},
}


def test_through_bodies(tmp_path: Path) -> None:
    whole = load_text(tmp_path, SOLVERS + USERS)
    assert {name: lacking(whole, op) for name, op in whole.operators.items()} == FOUND


def test_through_the_index(tmp_path: Path) -> None:
    (tmp_path / "solvers.yaml").write_text(SOLVERS)
    (tmp_path / "users.yaml").write_text(USERS)
    facts = tmp_path / "index.json"
    facts.write_text(index.dump(loader.load([str(tmp_path)])))
    known = [op for op in index.load(str(facts))[0] if op.family == "solvers"]
    part = loader.load([str(tmp_path / "users.yaml")], known)
    assert {name: lacking(part, op) for name, op in part.operators.items()} == FOUND


def test_generated_tests_say_so(tmp_path: Path) -> None:
    text = emit_family_tests(load_text(tmp_path, SOLVERS + USERS), "things")
    rows = dict(re.findall(r"Case\(\n +schema='(\w+)\(.*\n((?: {8}.*\n)*)", text))
    assert "refused={'cuda': ('float32', 'float64')}" in rows["factor"]
    for name in ("solve", "solve_twice"):
        assert "lacks={'cuda': ('factor',)}" in rows[name] and "refused" not in rows[name]
    for name in ("move", "move_twice"):
        assert "lacks" not in rows[name] and "refused" not in rows[name]


def test_the_registry() -> None:
    whole = registry()
    assert lacking(whole, whole.operators["fft_fft"])["cuda"] == (
        "_fft_c2c",
        "_fft_c2r",
        "_fft_r2c",
    )
    assert not lacking(whole, whole.operators["softmax"]) and not lacking(
        whole, whole.operators["add"]
    )


def test_a_check_is_skipped_only_for_what_is_known_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = optest.Case(
        "solve(Tensor self) -> Tensor", "composite", ("float32",), lacks={"cuda": ("factor",)}
    )

    def missing(name: str) -> None:
        def check(case: optest.Case, dtype: str) -> None:
            raise NotImplementedError(f"{name}: no kernel for device 'cuda'")

        optest.run_check(check, case, "float32")

    monkeypatch.setattr(under_test, "DEVICE", "cuda:0")
    with pytest.raises(pytest.skip.Exception, match="calls factor, which has no kernel on 'cuda'"):
        missing("factor")
    with pytest.raises(NotImplementedError):
        missing("move")
    monkeypatch.setattr(under_test, "DEVICE", "cpu")
    with pytest.raises(NotImplementedError):
        missing("factor")
