"""A compiled graph as plain data: another process runs it, and its derivative, without tracing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import Ops, compiled, same

import argand_aot as aot
import argand_aten as aten
import argand_c10 as c10
from argand_aot.source import FORMAT
from argand_c10 import metrics
from argand_c10.source_digest import source_digest
from argand_fx import Graph, GraphModule
from argand_fx.shapes import FakeTensor, GraphBuilder, ShapeEnv


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARGAND_CACHE_DIR", str(tmp_path))
    return tmp_path


def program(o: Ops, x: Any, w: Any, buffer: Any) -> Any:
    o.add_(buffer, 1)
    y = o.mul(o.sin(x), w)
    with o.no_grad():
        z = o.mul(y, 2)
    return o.mul(y, z), o.select(y, 0, 1), o.log(x), x


def inputs(seed: int = 0) -> list[Any]:
    c10.manual_seed(seed)
    x, w = aten.rand([3, 4]), aten.rand([4])
    x.requires_grad = w.requires_grad = True
    return [x, w, aten.zeros([2])]


def gradients(function: Any, which: int) -> list[Any]:
    x, w, buffer = inputs(1)
    function(x, w, buffer)[which].sum().backward()
    return [x.grad, w.grad, buffer]


def check_equal(a: list[Any], b: list[Any]) -> None:
    for x, y in zip(a, b, strict=True):
        assert (x is None and y is None) or same(x, y)


def test_round_trip() -> None:
    graph = compiled(program, inputs())
    first = gradients(graph, 0)
    data = json.loads(json.dumps(graph.serialize()))
    loaded = aot.load_aot_eager(data)
    assert loaded is not None
    assert loaded.plan == graph.plan
    metrics.reset()
    check_equal(gradients(loaded, 0), first)
    assert "derive" not in metrics.phase_times()  # the backward graph came from the cache too
    for which in (1, 2, 3):  # patterns of gradients that nobody compiled before
        eager = gradients(lambda *x: program(Ops(aten.ops, None), *x), which)
        check_equal(gradients(loaded, which), eager)


def test_lost_entries() -> None:
    graph = compiled(program, inputs())
    data = graph.serialize()
    for entry in (Path(os.environ["ARGAND_CACHE_DIR"]) / "aot" / "entries").iterdir():
        for file in entry.iterdir():
            file.unlink()
    assert aot.load_aot_eager(data) is None


def test_symbolic_sizes() -> None:
    env = ShapeEnv()
    builder = GraphBuilder(Graph(), env)
    x = builder.from_tensor(aten.randn([5, 3]), source="x", dynamic_dims=[0])
    x.requires_grad = True
    w = builder.from_tensor(aten.randn([3]), source="w")
    w.requires_grad = True
    builder.placeholder("x", x)
    builder.placeholder("w", w)
    o = builder.ops
    y = o.softmax(o.mul(o.reshape(x, [-1, 3]), w), 1)
    z = o.cat([y, y], 0)
    builder.output(
        (o.sum(o.mul(z, z), [0]), o.slice(x, 0, 1, 3), x.shape[0] * 2, o.transpose(z, 0, 1))
    )
    graph = aot.aot_eager(GraphModule(builder.constants, builder.graph), [x, w])
    assert isinstance(graph, aot.CompiledGraph)
    data = json.loads(json.dumps(graph.serialize()))
    loaded = aot.load_aot_eager(data)
    assert loaded is not None
    for n in (5, 8, 2):
        expected = _eager_symbolic(n)
        for function in (graph, loaded):
            x, w = _symbolic_inputs(n)
            a, b, c, d = function(x, w)
            (a.sum() + b.sum() + d.sum()).backward()
            assert c == 2 * n
            assert same(a, expected[0]) and same(d, expected[1])
            assert same(x.grad, expected[2]) and same(w.grad, expected[3])


def test_guards_of_the_backward_program_are_known_at_once() -> None:
    """They are taken when the compiler returns; a pattern of gradients that needs more is an error."""
    env = ShapeEnv()
    builder = GraphBuilder(Graph(), env)
    x = builder.from_tensor(aten.randn([5, 3]), source="x", dynamic_dims=[0])
    x.requires_grad = True
    builder.placeholder("x", x)
    builder.output((builder.ops.sum(x), builder.ops.mul(x, 2)))
    backwards = []

    def compiler(module: GraphModule, given: Any) -> Any:
        if not isinstance(given[0], FakeTensor):  # the symbol, which only backward graphs get
            backwards.append(given[-1].ndim)
            if given[-1].ndim == 2:
                assert x.shape[0] % 5 == 0  # a fact that the graph does not need
        return module.forward

    graph = aot.compile(GraphModule({}, builder.graph), [x], forward_compiler=compiler)
    assert isinstance(graph, aot.CompiledGraph)
    assert backwards == [0]  # the gradient of the scalar
    env.freeze()
    given = aten.randn([7, 3])
    given.requires_grad = True
    results = graph(given)
    results[0].backward(retain_graph=True)
    assert given.grad.tolist() == [[1.0] * 3] * 7
    with pytest.raises(RuntimeError, match=r"gradients arrived for results \[1\] only"):
        results[1].sum().backward()


def _symbolic_inputs(n: int) -> tuple[Any, Any]:
    c10.manual_seed(n)
    x, w = aten.randn([n, 3]), aten.randn([3])
    x.requires_grad = w.requires_grad = True
    return x, w


def _eager_symbolic(n: int) -> tuple[Any, ...]:
    o = aten.ops
    x, w = _symbolic_inputs(n)
    y = o.softmax(o.mul(o.reshape(x, [-1, 3]), w), 1)
    z = o.cat([y, y], 0)
    a, b, d = o.sum(o.mul(z, z), [0]), o.slice(x, 0, 1, 3), o.transpose(z, 0, 1)
    (a.sum() + b.sum() + d.sum()).backward()
    return a, d, x.grad, w.grad


def test_another_process(tmp_path: Path) -> None:
    graph = compiled(program, inputs())
    expected = gradients(graph, 0)
    (tmp_path / "data.json").write_text(json.dumps(graph.serialize()))
    code = (
        "import json, sys, argand_aot as aot, test_artifact as t\n"
        "graph = aot.load_aot_eager(json.load(open(sys.argv[1])))\n"
        "x, w, b = t.gradients(graph, 0)\n"
        "print(json.dumps([x.tolist(), w.tolist(), b.tolist()]))\n"
    )
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "data.json")],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [t.tolist() for t in expected]


def test_what_another_package_derived_is_not_loaded() -> None:
    """Backward programs hold rules of derivatives, shapes and layouts of these packages."""
    for name in ("argand_c10", "argand_aten", "argand_autograd", "argand_fx", "argand_aot"):
        assert source_digest(name) in FORMAT.split()
