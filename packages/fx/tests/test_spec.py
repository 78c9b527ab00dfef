"""The rules of the IR: each is noticed when broken."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import fx_operators as ops
import pytest

import argand_c10 as c10
import argand_fx as fx
from argand_c10 import Module
from argand_fx import spec
from argand_fx.symbolic import SymExpr


def good() -> fx.Graph:
    graph = fx.Graph()
    x = graph.placeholder("x")
    x.meta["binds"] = {"s0": ("size", 0)}
    y = graph.call_function(ops.neg, (x,))
    z = graph.call_function(ops.reshape, (y, [SymExpr("s0 + 1")]))
    graph.output((y, z))
    return graph


def nodes_of(graph: fx.Graph) -> dict[str, fx.Node]:
    return {n.name: n for n in graph.nodes}


def test_a_good_graph_passes():
    spec.check(good())
    spec.check(good(), compiler=True)
    good().lint()


def late_placeholder(graph: fx.Graph) -> None:
    with graph.inserting_before(graph.output_node()):
        graph.placeholder("late")


def after_output(graph: fx.Graph) -> None:
    graph.call_function(ops.neg, (nodes_of(graph)["x"],))


def use_before_definition(graph: fx.Graph) -> None:
    nodes = nodes_of(graph)
    nodes["neg"].args = (nodes["reshape"],)


def other_graph(graph: fx.Graph) -> None:
    nodes_of(graph)["neg"].args = (nodes_of(good())["x"],)


def same_name(graph: fx.Graph) -> None:
    nodes_of(graph)["neg"].name = "x"


def lost_user(graph: fx.Graph) -> None:
    nodes_of(graph)["x"].users.clear()


def not_callable(graph: fx.Graph) -> None:
    nodes_of(graph)["neg"].target = "neg"


def not_a_name(graph: fx.Graph) -> None:
    nodes_of(graph)["neg"].op = "call_method"


def unknown_opcode(graph: fx.Graph) -> None:
    nodes_of(graph)["neg"].op = "jump"


def tensor_argument(graph: fx.Graph) -> None:
    nodes_of(graph)["reshape"].update_kwarg("k", [c10.tensor([1.0])])


def missing_attribute(graph: fx.Graph) -> None:
    graph.owning_module = Module()
    with graph.inserting_before(graph.output_node()):
        graph.create_node("get_attr", "missing")


def no_module(graph: fx.Graph) -> None:
    graph.owning_module = Module()
    graph.owning_module.number = 3
    with graph.inserting_before(graph.output_node()):
        graph.create_node("call_module", "number")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (late_placeholder, "%late: a placeholder stands after other nodes"),
        (after_output, "%output: the output is not the last node"),
        (use_before_definition, "%neg: uses %reshape, which is later"),
        (other_graph, "%neg: uses %x, which is later, or in another graph"),
        (same_name, "%x: the name is not unique"),
        (lost_user, "%neg: uses %x, but is not among its users"),
        (not_callable, "%neg: the target 'neg' of call_function is not callable"),
        (not_a_name, "%neg: the target of call_method is Operator, expected str"),
        (unknown_opcode, "%neg: got opcode 'jump'"),
        (tensor_argument, "%reshape: a Tensor stands among the arguments"),
        (missing_attribute, "%missing: the owning module has no 'missing'"),
        (no_module, "%number: 'number' is int, expected a module"),
    ],
)
def test_each_broken_rule_is_named(change: Callable[[fx.Graph], None], message: str):
    graph = good()
    change(graph)
    with pytest.raises(fx.SpecError) as info:
        graph.lint()
    assert message in str(info.value)


def function(x: Any) -> Any:
    return x


def call(target: Any, op: str = "call_function", *extra: Any) -> Callable[[fx.Graph], None]:
    def change(graph: fx.Graph) -> None:
        with graph.inserting_before(graph.output_node()):
            graph.create_node(op, target, (nodes_of(graph)["x"], *extra))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (call("neg", "call_method"), "%neg_1: call_method in a compiler graph"),
        (call(function), "function is neither an operator nor registered"),
        (call(ops.reshape, "call_function", [SymExpr("s1")]), "uses the symbol s1"),
        (lambda graph: graph.erase_node(graph.output_node()), "the graph has no output"),
    ],
)
def test_the_narrower_rules_of_compiler_graphs(change: Callable[[fx.Graph], None], message: str):
    graph = good()
    change(graph)
    spec.check(graph)
    with pytest.raises(fx.SpecError) as info:
        spec.check(graph, compiler=True)
    assert message in str(info.value)


def test_registered_functions_are_allowed():
    graph = good()

    @spec.graph_function
    def higher_order(x: Any) -> Any:
        return x

    call(higher_order)(graph)
    call(operator.getitem, "call_function", 0)(graph)
    spec.check(graph, compiler=True)


def test_one_overload_is_wanted():
    first = c10.define("fxtest::many(Tensor self) -> Tensor")
    c10.define("fxtest::many.int(Tensor self, int n) -> Tensor")
    many = first if len(first.variants) > 1 else c10.find_operator("fxtest::many")
    graph = good()
    call(many)(graph)
    if len(many.variants) > 1:
        with pytest.raises(fx.SpecError, match="stands for 2 overloads"):
            spec.check(graph, compiler=True)
    graph = good()
    call(c10.find_operator("fxtest::many.int"), "call_function", 1)(graph)
    spec.check(graph, compiler=True)


def test_nested_graphs_are_checked():
    inner = good()
    after_output(inner)
    graph = fx.Graph()
    graph.output(graph.get_attr("body"))
    fx.GraphModule({"body": fx.GraphModule({}, inner)}, graph)
    with pytest.raises(fx.SpecError, match="in body: %output: the output is not the last"):
        graph.lint()
