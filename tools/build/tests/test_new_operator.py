"""A pointwise operator is one registry entry: added to a copy of the tree, it works with its first and second derivative."""

import math
from pathlib import Path

import pytest

from tools.build.workspace_copy import WorkspaceCopy

ENTRY = """
- op: softcap(Tensor self, Scalar cap) -> Tensor
  kind: pointwise
  dtypes: floating
  expr: cap * tanh(self / cap)
  grad: {self: d(expr)}
  doc: cap * tanh(x / cap) of each element.
"""

PROGRAM = """
import argand as torch

x = torch.tensor([-3.0, 0.0, 0.5, 2.0], dtype=torch.float64, requires_grad=True)
y = torch.softcap(x, 2.0)
assert torch.equal(y.detach(), x.detach().softcap(2.0))
(first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), x)
print("RESULT", [y.tolist(), first.tolist(), second.tolist()])
"""


def test_softcap_by_one_entry(tmp_path: Path) -> None:
    with WorkspaceCopy(Path.cwd(), tmp_path) as copy:
        registry = copy.root / "packages/aten/registry/activation.yaml"
        registry.write_text(registry.read_text() + ENTRY)
        program = tmp_path / "program.py"
        program.write_text(PROGRAM)
        done = copy.bazel("run", "//tools:python", "--", str(program))
        assert done.returncode == 0, done.stdout[-6000:]
    line = next(text for text in done.stdout.splitlines() if text.startswith("RESULT"))
    value, first, second = eval(line.removeprefix("RESULT "))
    for i, x in enumerate([-3.0, 0.0, 0.5, 2.0]):
        t = math.tanh(x / 2)
        assert value[i] == pytest.approx(2 * t)
        assert first[i] == pytest.approx(1 - t * t)
        assert second[i] == pytest.approx(-t * (1 - t * t))
