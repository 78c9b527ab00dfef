"""Passes that look at a module with inputs, and that take it apart."""

from __future__ import annotations

import fx_operators as ops
import pytest

import argand_c10 as c10
import argand_fx as fx
from argand_c10 import Module, Parameter, tensor
from argand_fx.passes.shape_prop import ShapeProp
from argand_fx.passes.split_module import split_module


class Net(Module):
    def __init__(self):
        super().__init__()
        self.weight = Parameter(tensor([2.0, 3.0]), requires_grad=False)

    def forward(self, x):
        a = ops.add(x, self.weight)
        b = ops.mul(a, 2)
        return ops.add(b, a), [b]


def test_facts_are_noted():
    gm = fx.symbolic_trace(Net())
    ShapeProp(gm).propagate(tensor([[1.0, 2.0]]))
    nodes = {n.name: n for n in gm.graph.nodes}
    facts = nodes["mul"].meta["tensor_meta"]
    assert (facts.shape, facts.dtype, facts.stride) == ((1, 2), c10.float32, (2, 1))
    assert facts.memory_format is c10.contiguous_format and not facts.requires_grad
    assert nodes["output"].meta["type"] is tuple
    assert nodes["output"].meta["tensor_meta"][1][0].shape == (1, 2)


def test_parts_are_modules():
    gm = fx.symbolic_trace(Net())
    x = tensor([1.0, 2.0])
    names = {}
    split = split_module(gm, gm, lambda node: int(node.name != "add"), names)
    assert [n.target for n in split.graph.nodes if n.op == "call_module"] == [
        "submod_0",
        "submod_1",
    ]
    assert [n.target for n in split.graph.nodes if n.op == "get_attr"] == ["weight"]
    total, (double,) = split(x)
    assert total.tolist() == [9.0, 15.0] and double.tolist() == [6.0, 10.0]
    assert dict(split.named_parameters())["weight"] is gm.weight
    assert len(split.submod_1.graph.find_nodes(op="placeholder")) == 1


def test_parts_that_need_each_other_are_refused():
    gm = fx.symbolic_trace(Net())
    with pytest.raises(RuntimeError, match="cycle exists between partitions"):
        split_module(gm, gm, lambda node: int(node.name == "mul"))
    with pytest.raises(RuntimeError, match="parts after it compute"):
        split_module(gm, gm, lambda node: int(node.name == "mul"), keep_original_order=True)
