"""Whole graphs: compiled, with gradients, with symbolic sizes, and without a compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import argand_aten as A
import argand_autograd
import argand_c10 as c10
import argand_inductor
from argand_c10 import metrics, records
from argand_fx import Graph, GraphModule
from argand_fx.artifact import BackendArtifact
from argand_fx.shapes import GraphBuilder, ShapeEnv
from argand_inductor import backend, compile_graph, load, load_backend
from argand_inductor.graph_compiler import EagerProgram


def trace(body: Callable[..., Any], *tensors: c10.Tensor) -> tuple[GraphModule, list[Any]]:
    builder = GraphBuilder(Graph())
    fakes = [
        builder.placeholder(f"x{i}", builder.from_tensor(tensor))
        for i, tensor in enumerate(tensors)
    ]
    out = body(builder.ops, *fakes)
    builder.output(tuple(out) if isinstance(out, list | tuple) else (out,))
    return GraphModule(dict(builder.constants), builder.graph), fakes


def layer(ops: Any, x: Any, w: Any, b: Any) -> Any:
    h = ops.gelu(ops.add(ops.mm(x, w), b))
    return ops.relu(ops.mul(h, 2.0)), ops.mean(h)


def inputs() -> tuple[c10.Tensor, c10.Tensor, c10.Tensor]:
    return A.randn(17, 8), A.randn(8, 33), A.randn(33)


def test_a_graph_of_kernels_and_operators() -> None:
    x, w, b = inputs()
    gm, fakes = trace(layer, x, w, b)
    program = compile_graph(gm, fakes)
    assert isinstance(program, BackendArtifact)
    for got, wanted in zip(program(x, w, b), layer(A.ops, x, w, b), strict=True):
        assert A.allclose(got, wanted, rtol=1e-6, atol=1e-6)
    again = load(program.serialize())
    assert again is not None
    for got, wanted in zip(again(x, w, b), program(x, w, b), strict=True):
        assert A.equal(got, wanted)
    assert load({**program.serialize(), "compiler": "of other sources"}) is None


def test_gradients() -> None:
    tensors = inputs()
    for t in tensors:
        t.requires_grad = True

    def loss(ops: Any, x: Any, w: Any, b: Any) -> Any:
        out, mean = layer(ops, x, w, b)
        return ops.add(ops.sum(ops.mul(out, out)), mean)

    compiled = backend(*trace(loss, *tensors))
    (value,) = compiled(*tensors)
    got = argand_autograd.grad(value, tensors)
    wanted = argand_autograd.grad(loss(A.ops, *tensors), tensors)
    for a, b in zip(got, wanted, strict=True):
        assert A.allclose(a, b, rtol=1e-4, atol=1e-4)


def test_a_fresh_process_loads_forward_and_backward(own_cache: Path) -> None:
    x = A.randn(6, 4)
    x.requires_grad = True

    def loss(ops: Any, a: Any) -> Any:
        return ops.sum(ops.mul(ops.gelu(a), a))

    compiled = backend(*trace(loss, x))
    (g,) = argand_autograd.grad(compiled(x)[0], [x])
    data = compiled.serialize()
    assert load_backend({**data, "format": "of other sources"}) is None
    again = load_backend(data)
    assert again is not None
    assert A.equal(argand_autograd.grad(again(x)[0], [x])[0], g)
    text = f"""
import sys
import argand_inductor
program = argand_inductor.load_backend({data!r})
assert program is not None
import argand_aten as A, argand_autograd
from argand_c10 import metrics
x = A.ones(6, 4)
x.requires_grad = True
(g,) = argand_autograd.grad(program(x)[0], [x])
assert g.shape == x.shape
counters = metrics.counters()
assert counters.get("artifacts_loaded") == 2, counters
assert not any(counters.get(k) for k in ("traces", "codegen_runs", "compiler_runs", "graphs")), counters
for name in ("sympy", "networkx", "argand_aten.generated.tables", "argand_inductor.lowering"):
    assert name not in sys.modules, name
"""
    environment = {**os.environ, "ARGAND_CC": "/nowhere/gcc"}
    subprocess.run([sys.executable, "-c", text], env=environment, check=True)


def test_errors_name_the_users_line() -> None:
    x, index = A.randn(4), c10.tensor([0, 3])
    builder = GraphBuilder(Graph())
    a = builder.placeholder("a", builder.from_tensor(x))
    i = builder.placeholder("i", builder.from_tensor(index))
    builder.location = ("/home/me/model.py", 42, "forward")
    builder.output((builder.ops.index_select(builder.ops.add(a, 1), 0, i),))
    program = compile_graph(GraphModule({}, builder.graph), [a, i])
    assert A.equal(program(x, index)[0], (x + 1)[[0, 3]])
    with pytest.raises(IndexError, match=r"/home/me/model.py:42 \(forward\)"):
        program(x, c10.tensor([0, 4]))


def test_symbolic_sizes_compile_once() -> None:
    builder = GraphBuilder(Graph(), ShapeEnv())
    fake = builder.from_tensor(A.randn(5, 3), dynamic_dims=[0])
    a = builder.placeholder("a", fake)
    out = builder.ops.add(builder.ops.relu(a), 1.0)
    builder.output((out, builder.ops.sum(out, [0])))
    before = metrics.counters().get("codegen_runs", 0)
    program = compile_graph(GraphModule({}, builder.graph), [a])
    for n in (2, 3, 5, 64, 1000):
        x = A.randn(n, 3)
        y, total = program(x)
        assert A.equal(y, A.relu(x) + 1)
        assert A.allclose(total, y.sum(0), rtol=1e-5)
    assert metrics.counters()["codegen_runs"] == before + 1


@pytest.mark.parametrize("fault", ["missing", "failing", "hanging"])
def test_without_a_compiler_a_graph_runs_operator_by_operator(
    fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = tmp_path / "cc"
    if fault != "missing":
        compiler.write_text("#!/bin/sh\n" + ("exit 1" if fault == "failing" else "sleep 60"))
        compiler.chmod(0o755)
    monkeypatch.setenv("ARGAND_CC", str(compiler))
    monkeypatch.setenv("ARGAND_COMPILE_TIMEOUT", "0.3")
    x, w, b = inputs()
    w.requires_grad = True
    gm, fakes = trace(layer, x, w, b)
    with records.collect() as found:
        program = compile_graph(gm, fakes)
    code = {"missing": "IN001", "failing": "IN002", "hanging": "IN003"}[fault]
    assert [(r.kind, r.code) for r in found] == [("fallback", code)]
    assert found[0].fix
    assert isinstance(program, EagerProgram)
    assert load(program.serialize()) is None
    for got, wanted in zip(program(x, w, b), layer(A.ops, x, w, b), strict=True):
        assert A.equal(got, wanted)
        assert not got.requires_grad


def test_constants_of_the_graph() -> None:
    table = A.randn(3)
    x = A.randn(2, 3)
    program = compile_graph(*trace(lambda ops, a: ops.mul(ops.add(a, table), table), x))
    assert A.equal(program(x)[0], (x + table) * table)
    again = load(program.serialize())
    assert again is not None
    assert A.equal(again(x)[0], (x + table) * table)


def test_names_of_the_package_are_not_names_of_its_modules() -> None:
    """A name given lazily must stay what it is when modules are imported."""
    folder = Path(argand_inductor.__file__ or "").parent
    modules = {path.stem for path in folder.iterdir()}
    assert modules.isdisjoint(argand_inductor.__all__)
