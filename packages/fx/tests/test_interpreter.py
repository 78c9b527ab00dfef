"""Interpreter and Transformer."""

from __future__ import annotations

import operator
from typing import Any

import fx_operators as ops
import pytest

import argand_fx as fx
from argand_c10 import Module, Parameter, tensor


class Net(Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(tensor([2.0, 3.0]), requires_grad=False)

    def forward(self, x: Any, scale: Any = 4) -> Any:
        return ops.add(ops.mul(x, self.weight), x, alpha=scale)


def test_runs_like_the_module():
    net = Net()
    gm = fx.symbolic_trace(net)
    x = tensor([1.0, 2.0])
    assert net(x).tolist() == [6.0, 14.0]
    assert fx.Interpreter(gm).run(x).tolist() == gm(x).tolist() == [6.0, 14.0]
    assert fx.Interpreter(gm).run(x, 0).tolist() == gm(x, 0).tolist() == [2.0, 6.0]


def test_methods_are_called_by_opcode():
    seen = []

    class Spy(fx.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            seen.append(target)
            if target is operator.add:
                return args[0] - args[1]
            return super().call_function(target, args, kwargs)

        def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
            seen.append(target)
            return super().call_method(target, args, kwargs)

    gm = fx.symbolic_trace(lambda x, y: (x + y).bit_length())
    assert Spy(gm).run(9, 1) == 4 and seen == [operator.add, "bit_length"]


def test_variable_inputs_and_initial_values():
    def total(first, *rest, **named):
        return first + rest[0] + rest[1]

    gm = fx.symbolic_trace(total)
    assert fx.Interpreter(gm).run(1, 2, 3) == gm(1, 2, 3) == 6
    nodes = {n.name: n for n in gm.graph.nodes}
    assert fx.Interpreter(gm).run(1, 2, 3, initial_env={nodes["add"]: 100}) == 103


def test_errors_name_the_node_and_the_users_line():
    gm = fx.symbolic_trace(lambda x: x.missing + 1)
    with pytest.raises(AttributeError) as info:
        fx.Interpreter(gm).run(1)
    (note,) = info.value.__notes__
    assert "while running %getattr_1 = call_function builtins.getattr" in note
    assert __file__.rpartition("/")[2] in note
    with pytest.raises(RuntimeError, match="expected an input for 'x', got no more"):
        fx.Interpreter(gm).run()
    graph = fx.Graph()
    graph.create_node("get_attr", "nothing")
    graph.output(None)
    gm = fx.symbolic_trace(lambda: None)
    with pytest.raises(RuntimeError, match="the graph names 'nothing', but GraphModule has no"):
        fx.Interpreter(gm, graph=graph).run()


def test_transformer_rebuilds():
    class Swap(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target is ops.add:
                target, args, kwargs = ops.mul, args, {}
            result = super().call_function(target, args, kwargs)
            return result if target is ops.neg else ops.neg(result)

    gm = fx.symbolic_trace(Net())
    new = Swap(gm).transform()
    new.graph.lint()
    assert [n.target for n in new.graph.nodes if n.op == "call_function"] == [
        ops.mul,
        ops.neg,
        ops.mul,
        ops.neg,
    ]
    assert new(tensor([1.0, 2.0])).tolist() == [2.0, 12.0]
    assert new.weight is gm.weight
    assert [n.args for n in new.graph.find_nodes(op="placeholder")] == [(), (4,)]
    same = fx.Transformer(gm).transform()
    assert str(same.graph) == str(gm.graph)
