"""Operators without kernels of a backend are known from the registry, through bodies and through the index, and their tests say so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.codegen import index, loader
from tools.codegen.emit_tests import emit_family_tests
from tools.codegen.lacking import lacking
from tools.codegen.runtime import optest, optest_calls, under_test
from tools.codegen.tests.support import load_text, registry

SOLVERS = """\
- op: factor(Tensor self) -> Tensor
  kind: pointwise
  dtypes: floating_complex
  result: real
  expr: abs(self)
  grad: none
  doc: Only on the CPU.
- op: decompose(Tensor self) -> Tensor
  kind: opaque
  kernel: {cpu: decompose}
  shape: return self.shape
  grad: none
  samples: [{args: ["T(2,2)"]}]
  doc: Runs on the CPU wherever its tensor is.
- op: move(Tensor self) -> Tensor
  kind: opaque
  kernel: {cpu: move, cuda: move}
  shape: return self.shape
  grad: none
  samples: [{args: ["T(2,2)"]}]
  doc: On both.
- op: size(Tensor self) -> Tensor
  kind: pointwise
  dtypes: floating_complex
  result: real
  expr: abs(self)
  grad: none
  doc: Complex numbers only on the CPU.
- op: direction(Tensor self) -> Tensor
  kind: opaque
  dtypes: floating_complex
  kernel: {cpu: direction, cuda: direction}
  shape: return self.shape
  grad: {self: grad * size(self)}
  samples: [{args: ["T(2,2)"]}]
  doc: Its derivative needs more than itself.
- op: mul(Tensor|Scalar self, Tensor|Scalar other) -> Tensor
  kind: pointwise
  dtypes: floating
  expr: self * other
  grad: none
  doc: Product.
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
FACTOR = {"cuda": {"factor": ("complex128", "complex64")}}
SIZE = {"cuda": {"size": ("complex128", "complex64")}}
FOUND = {
    "factor": FACTOR,
    "decompose": {},
    "move": {},
    "size": SIZE,
    "direction": SIZE,
    "mul": {},
    "solve": FACTOR,
    "solve_twice": FACTOR,
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
    assert re.search(r"refused={'cuda': \('complex64'", rows["factor"])
    for name in ("solve", "solve_twice"):
        assert "lacks={'cuda': {'factor': (" in rows[name] and "refused" not in rows[name]
    for name in ("decompose", "move", "move_twice"):
        assert "lacks" not in rows[name] and "refused" not in rows[name]


def test_the_registry() -> None:
    whole = registry()
    assert "complex64" in lacking(whole, whole.operators["prod"])["cuda"]["prod"]
    for name in ("softmax", "fft_fft"):
        assert not lacking(whole, whole.operators[name])


def test_a_check_is_skipped_only_for_what_is_known_to_be_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacks = {"cuda": {"size": ("complex64",)}}
    case = optest_calls.Case("solve(Tensor self) -> Tensor", "composite", ("float32",), lacks=lacks)

    def refused(error: str) -> None:
        def check(case: optest_calls.Case, dtype: str) -> None:
            raise NotImplementedError(error)

        optest.run_check(check, case, "float32")

    def is_skipped(error: str) -> None:
        with pytest.raises(pytest.skip.Exception, match="has no such kernel on 'cuda'"):
            refused(error)

    def fails(error: str) -> None:
        with pytest.raises(NotImplementedError):
            refused(error)

    monkeypatch.setattr(under_test, "DEVICE", "cuda:0")
    fails("size: no kernel for device 'cuda'")
    is_skipped("size: not implemented for dtype complex64 on device 'cuda'")
    fails("size: not implemented for dtype float32 on device 'cuda'")
    monkeypatch.setattr(under_test, "DEVICE", "cpu")
    fails("size: not implemented for dtype complex64 on device 'cuda'")
