"""Passes: dead code, common subexpressions, and their runner."""

from __future__ import annotations

import operator
from typing import Any

import fx_operators  # noqa: F401  (defines the operators that the texts name)
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import argand_c10 as c10
import argand_fx as fx
from argand_c10 import Module
from argand_c10.logs import set_logs
from argand_fx import config
from argand_fx.passes import eliminate_common_subexpressions, eliminate_dead_code
from argand_fx.symbolic import SymExpr


def text(program: Any) -> str:
    return program.to_text(comments=False)


def module(lines: str) -> fx.GraphModule:
    """The module of a graph's text, without its braces."""
    body = "\n".join("    " + line.strip() for line in lines.strip().splitlines())
    graph = fx.parse("graph {\n" + body + "\n}\n")
    return fx.GraphModule(graph.owning_module, graph)


def test_dead_code_goes_and_effects_stay():
    gm = module(
        """
        %x = placeholder x
        %unused = placeholder unused
        %a = call_function fxtest::neg(%x)
        %b = call_function fxtest::neg(%a)
        %c = call_function fxtest::add_(%x, 1)
        %d = call_function fxtest::noise(%x)
        %e = call_method mul_(%x, 2)
        %f = call_method mul(%x, 2)
        %g = call_function operator.setitem(%x, 0, 1)
        %output = output %x
        """
    )
    assert fx.passes.run([eliminate_dead_code], gm, check=True)
    assert [n.name for n in gm.graph.nodes] == ["x", "unused", "c", "d", "e", "g", "output"]
    assert not fx.passes.run([eliminate_dead_code], gm, check=True)
    assert gm.graph.eliminate_dead_code(lambda node: False)
    assert [n.name for n in gm.graph.nodes] == ["x", "unused", "output"]


def test_modules_in_training_are_kept():
    class Child(Module):
        def forward(self, x: Any) -> Any:
            return x

    root = Module()
    root.child = Child()
    graph = fx.Graph(root)
    x = graph.placeholder("x")
    graph.call_module("child", (x,))
    graph.output(x)
    gm = fx.GraphModule(root, graph)
    assert not eliminate_dead_code(gm)
    gm.child.eval()
    assert eliminate_dead_code(gm) and len(gm.graph.nodes) == 2


def test_dead_code_in_nested_graphs():
    inner = module("%x = placeholder x\n%n = call_function fxtest::neg(%x)\n%output = output %x")
    graph = fx.Graph()
    graph.output(graph.get_attr("body"))
    gm = fx.GraphModule({"body": inner}, graph)
    assert "neg" in inner.code and eliminate_dead_code(gm)
    assert "neg" not in text(inner) and "neg" not in inner.code


def test_equal_computations_are_done_once():
    gm = module(
        """
        %x = placeholder x
        %a = call_function fxtest::add(%x, 1, alpha=2)
        %b = call_function fxtest::add(%x, 1, alpha=2)
        %c = call_function fxtest::neg(%a)
        %d = call_function fxtest::neg(%b)
        %v = call_function fxtest::view(%c)
        %w = call_function fxtest::view(%d)
        %r = call_function fxtest::reshape(%x, [sym("s0"), 2])
        %s = call_function fxtest::reshape(%x, [sym("s0"), 2])
        %output = output (%c, %d, %v, %w, %r, %s)
        """
    )
    assert fx.passes.run([eliminate_common_subexpressions], gm, check=True)
    assert text(gm).splitlines()[2:-1] == [
        "    %a = call_function fxtest::add(%x, 1, alpha=2)",
        "    %c = call_function fxtest::neg(%a)",
        "    %v = call_function fxtest::view(%c)",
        '    %r = call_function fxtest::reshape(%x, [sym("s0"), 2])',
        "    %output = output (%c, %c, %v, %v, %r, %r)",
    ]
    assert not eliminate_common_subexpressions(gm)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("fxtest::add(%x, 1)", "fxtest::add(%x, 1.0)"),
        ("fxtest::add(%x, 1)", "fxtest::add(%x, True)"),
        ("fxtest::add(%x, 0.0)", "fxtest::add(%x, -0.0)"),
        ("fxtest::add(%x, 1)", "fxtest::add(%x, 1, alpha=1)"),
        ("fxtest::reshape(%x, [1])", "fxtest::reshape(%x, (1,))"),
        ("fxtest::reshape(%x, [sym('s0')])", "fxtest::reshape(%x, [sym('s1')])"),
        ("fxtest::noise(%x)", "fxtest::noise(%x)"),
        ("fxtest::add_(%x, 1)", "fxtest::add_(%x, 1)"),
    ],
)
def test_what_differs_is_kept(first: str, second: str):
    gm = module(
        f"%x = placeholder x\n%a = call_function {first}\n%b = call_function {second}\n"
        "%output = output (%a, %b)"
    )
    before = text(gm)
    assert not eliminate_common_subexpressions(gm) and text(gm) == before


def test_nothing_is_merged_around_a_write():
    gm = module(
        """
        %x = placeholder x
        %a = call_function fxtest::neg(%x)
        %v = call_function fxtest::view(%x)
        %w = call_function fxtest::add_(%v, 1)
        %b = call_function fxtest::neg(%x)
        %p = call_function fxtest::neg(%a)
        %q = call_function fxtest::neg(%a)
        %output = output (%a, %b, %p, %q)
        """
    )
    x = c10.tensor([1.0])
    assert [r.tolist() for r in gm(x)] == [[-1.0], [-2.0], [1.0], [1.0]]
    eliminate_common_subexpressions(gm)
    gm.recompile()
    assert text(gm).count("neg(%x)") == 2 and text(gm).count("neg(%a)") == 1
    assert [r.tolist() for r in gm(c10.tensor([1.0]))] == [[-1.0], [-2.0], [1.0], [1.0]]


def test_written_copies_are_not_merged():
    gm = module(
        """
        %x = placeholder x
        %a = call_function fxtest::neg(%x)
        %b = call_function fxtest::neg(%x)
        %w = call_function fxtest::add_(%b, 10)
        %output = output (%a, %w)
        """
    )
    eliminate_common_subexpressions(gm)
    assert [r.tolist() for r in gm(c10.tensor([1.0]))] == [[-1.0], [9.0]]


def test_grad_mode_tells_apart():
    gm = module(
        "%x = placeholder x\n%a = call_function fxtest::neg(%x)\n%b = call_function fxtest::neg(%x)\n"
        "%output = output (%a, %b)"
    )
    {n.name: n for n in gm.graph.nodes}["b"].meta["grad_enabled"] = False
    assert not eliminate_common_subexpressions(gm)


def test_runner_checks_around_each_pass_and_names_it():
    def break_order(gm: fx.GraphModule) -> bool:
        first = next(n for n in gm.graph.nodes if n.op == "call_function")
        gm.graph.output_node().append(first)
        return True

    def new() -> fx.GraphModule:
        return fx.symbolic_trace(lambda x: x + 1)

    with pytest.raises(fx.SpecError, match="after the pass break_order: .*\n.*%output"):
        fx.passes.run([eliminate_dead_code, break_order], new(), check=True)
    fx.passes.run([break_order], new(), check=False)
    fx.passes.run([break_order], new())
    with config.patch(check_passes=True), pytest.raises(fx.SpecError):
        fx.passes.run([break_order], new())


def test_runner_regenerates_code_and_logs(capsys: pytest.CaptureFixture[str]):
    gm = fx.symbolic_trace(lambda x: (x + 1, x + 2)[0])
    assert "add_1 =" in gm.code
    set_logs("graph")
    try:
        fx.passes.run([eliminate_dead_code, eliminate_common_subexpressions], gm)
    finally:
        set_logs("")
    assert "add_1 =" not in gm.code
    assert capsys.readouterr().err.splitlines() == [
        "[argand.graph] eliminate_dead_code: changed",
        "[argand.graph] eliminate_common_subexpressions: no change",
    ]


def test_symbolic_and_plain_python_calls_merge():
    graph = fx.Graph()
    x = graph.placeholder("x")
    a, b = (graph.call_function(operator.getitem, (x, SymExpr("s0"))) for _ in range(2))
    c, d = (graph.call_function(id, (x,)) for _ in range(2))
    graph.output((a, b, c, d))
    gm = fx.GraphModule({}, graph)
    assert eliminate_common_subexpressions(gm)
    assert graph.output_node().args[0] == (a, a, c, d)


OPERATORS = ["neg", "neg", "neg", "add", "mul", "view", "add_", "total.dim"]
STEPS = st.tuples(st.sampled_from(OPERATORS), st.integers(0, 3), st.integers(0, 2))


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=10), st.booleans())
def test_passes_keep_what_a_program_computes(steps: list[tuple[str, int, int]], shared: bool):
    """Random programs with views and writes, the inputs sharing memory or not, give the same results after the passes."""
    lines = ["%x = placeholder x", "%y = placeholder y"]
    values = ["x", "y"]
    for i, (name, operand, other) in enumerate(steps):
        first = values[operand % len(values)]
        second = {0: "1", 1: "2"}.get(other, f"%{values[other % len(values)]}")
        rest = {"neg": "", "view": "", "total.dim": ", []"}.get(name, f", {second}")
        lines.append(f"%v{i} = call_function fxtest::{name}(%{first}{rest})")
        values.append(f"v{i}")
    lines.append(f"%output = output ({', '.join('%' + v for v in values)},)")

    def run(gm: fx.GraphModule) -> list[Any]:
        x, y = c10.tensor([1.0, 2.0]), c10.tensor([3.0, 5.0])
        results = gm(x, x if shared else y)
        return [r.tolist() for r in (*results, x, y)]

    expected = run(module("\n".join(lines)))
    gm = module("\n".join(lines))
    fx.passes.run([eliminate_common_subexpressions, eliminate_dead_code], gm, check=True)
    assert run(gm) == expected
    assert fx.parse(gm.to_text()).to_text() == gm.to_text(comments=False)
    assert run(fx.Transformer(gm).transform()) == expected
