"""Matching and replacing subgraphs."""

from __future__ import annotations

from typing import Any

import fx_operators as ops
import pytest

import argand_fx as fx
from argand_c10 import Module, Parameter, tensor


def names(graph: fx.Graph) -> list[str]:
    return [n.name for n in graph.nodes]


def add_mul(a: Any, b: Any) -> Any:
    return ops.mul(ops.add(a, b), b)


def test_every_occurrence_is_replaced():
    def program(x, y):
        p = ops.mul(ops.add(x, y), y)
        q = ops.mul(ops.add(p, y), y)
        return ops.neg(q)

    gm = fx.symbolic_trace(program)
    matches = fx.replace_pattern(gm, add_mul, lambda a, b: ops.add(a, ops.neg(b)))
    gm.graph.lint()
    assert len(matches) == 2
    assert [n.target for n in gm.graph.nodes if n.op == "call_function"] == [
        ops.neg,
        ops.add,
        ops.neg,
        ops.add,
        ops.neg,
    ]
    assert gm(tensor([5.0]), tensor([2.0])).tolist() == [-1.0]


def test_occurrences_do_not_overlap():
    gm = fx.symbolic_trace(lambda x: ops.neg(ops.neg(ops.neg(x))))
    assert len(fx.replace_pattern(gm, lambda a: ops.neg(ops.neg(a)), lambda a: a)) == 1
    gm.graph.lint()
    assert gm(tensor([3.0])).tolist() == [-3.0]


def test_one_input_must_be_one_value():
    def program(x, y, z):
        return ops.mul(ops.add(x, y), z), ops.mul(ops.add(x, z), z)

    gm = fx.symbolic_trace(program)
    (match,) = fx.SubgraphMatcher(fx.symbolic_trace(add_mul).graph).match(gm.graph)
    assert [n.name for n in match.placeholders] == ["x", "z"]
    assert match.anchor.name == "mul_1" and [n.name for n in match.returning_nodes] == ["mul_1"]
    assert {p.name: n.name for p, n in match.nodes_map.items()} == {
        "mul": "mul_1",
        "add": "add_1",
        "a": "x",
        "b": "z",
    }


def test_values_used_elsewhere_are_not_swallowed():
    def program(x, y):
        inner = ops.add(x, y)
        return ops.mul(inner, y), inner

    gm = fx.symbolic_trace(program)
    pattern = fx.symbolic_trace(add_mul).graph
    assert fx.SubgraphMatcher(pattern).match(gm.graph) == []
    assert len(fx.SubgraphMatcher(pattern, allow_internal_uses=True).match(gm.graph)) == 1


def test_constants():
    gm = fx.symbolic_trace(lambda x: (ops.add(x, 1), ops.add(x, 1.0), ops.add(x, 2, alpha=3)))
    graph = fx.symbolic_trace(lambda a: ops.add(a, 1)).graph
    assert len(fx.SubgraphMatcher(graph).match(gm.graph)) == 1
    assert len(fx.SubgraphMatcher(graph, ignore_literals=True).match(gm.graph)) == 2
    any_number = fx.symbolic_trace(lambda a, b: ops.add(a, b)).graph
    matches = fx.SubgraphMatcher(any_number).match(gm.graph)
    assert [m.placeholders[1] for m in matches] == [1, 1.0]
    assert fx.SubgraphMatcher(any_number, match_placeholder=False).match(gm.graph) == []


def test_several_results():
    def pattern(a, b):
        return ops.add(a, b), ops.mul(a, b)

    def replacement(a, b):
        return ops.mul(a, b), ops.add(a, b)

    def program(x, y):
        m = ops.mul(x, y)
        s = ops.add(x, y)
        return ops.neg(s), m

    gm = fx.symbolic_trace(program)
    assert len(fx.replace_pattern(gm, pattern, replacement)) == 1
    gm.graph.lint()
    assert [r.tolist() for r in gm(tensor([3.0]), tensor([4.0]))] == [[-12.0], [7.0]]


def test_replacement_stands_before_all_users_of_its_results():
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(ops.neg, (x,))
    user = graph.call_function(ops.mul, (a, a))
    b = graph.call_function(ops.add, (x, 1))
    graph.output((user, b))
    gm = fx.GraphModule({}, graph)
    matched = fx.replace_pattern(
        gm, lambda p: (ops.neg(p), ops.add(p, 1)), lambda p: (ops.add(p, 2), ops.add(p, 3))
    )
    gm.graph.lint()
    assert len(matched) == 1
    assert [r.tolist() for r in gm(tensor([1.0]))] == [[9.0], [4.0]]


def test_filters_and_wrong_patterns():
    gm = fx.symbolic_trace(lambda x: ops.neg(x))
    refused = fx.replace_pattern_with_filters(
        gm, lambda a: ops.neg(a), lambda a: a, [lambda match, graph, pattern: False]
    )
    assert refused == [] and names(gm.graph) == ["x", "neg", "output"]
    with pytest.raises(ValueError, match="the pattern has 1 parameters, the replacement 2"):
        fx.replace_pattern(gm, lambda a: ops.neg(a), lambda a, b: a)
    with pytest.raises(ValueError, match="the pattern has 1 results, the replacement 2"):
        fx.replace_pattern(gm, lambda a: ops.neg(a), lambda a: (a, a))
    with pytest.raises(ValueError, match="expected calls; return what is to be replaced"):
        fx.replace_pattern(gm, lambda a: a, lambda a: a)

    def unused(a):
        ops.neg(a)
        return ops.add(a, 1)

    with pytest.raises(ValueError, match="no result of the pattern uses %neg"):
        fx.replace_pattern(gm, unused, lambda a: a)


def test_replacement_brings_its_attributes():
    class Scale(Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = Parameter(tensor([10.0]), requires_grad=False)

        def forward(self, a: Any) -> Any:
            return ops.mul(a, self.scale)

    gm = fx.symbolic_trace(lambda x: ops.neg(x))
    fx.replace_pattern(gm, lambda a: ops.neg(a), Scale())
    gm.graph.lint()
    assert gm(tensor([2.0])).tolist() == [20.0] and isinstance(gm.scale, Parameter)


def test_places_of_the_replaced_are_kept():
    gm = fx.symbolic_trace(lambda x: ops.neg(x))
    (old,) = gm.graph.find_nodes(op="call_function")
    place = old.meta["location"]
    old.meta["val"] = "value"
    fx.replace_pattern(gm, lambda a: ops.neg(a), lambda a: ops.mul(ops.add(a, 0), -1))
    add, mul = gm.graph.find_nodes(op="call_function")
    assert add.meta["location"] == mul.meta["location"] == place
    assert mul.meta["val"] == "value" and "val" not in add.meta
