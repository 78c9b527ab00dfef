"""Calls with all arguments under their names."""

from __future__ import annotations

import operator
from typing import Optional

import fx_operators as ops
import pytest

import argand_fx as fx
from argand_c10 import Module, Parameter, Tensor, tensor
from argand_fx.operator_schemas import (
    create_type_hint,
    get_signature_for_torch_op,
    normalize_function,
    normalize_module,
    type_matches,
)


def test_operators():
    x = tensor([1.0])
    assert normalize_function(ops.add, (x, 2)) == ((x, 2), {"alpha": 1})
    found = normalize_function(ops.add, (x,), {"other": 2}, normalize_to_only_use_kwargs=True)
    assert found == ((), {"input": x, "other": 2, "alpha": 1})
    assert normalize_function(ops.add, (x,)) is None
    assert normalize_function(operator.add, (x, x)) is None
    assert normalize_function(len, (x,)) is None
    assert get_signature_for_torch_op(operator.add) is None
    signatures, overloads = get_signature_for_torch_op(ops.add, return_schemas=True)
    assert len(signatures) == len(overloads) and "alpha" in signatures[0].parameters


def test_nodes():
    class Inner(Module):
        def forward(self, x, scale=3):
            return x

    class Net(Module):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(tensor([2.0]))
            self.inner = Inner()

        def forward(self, x):
            return ops.add(self.inner(x), self.weight)

    net = Net()
    graph = fx.Tracer().trace(net)
    nodes = {n.op: n for n in graph.nodes}
    called = nodes["call_function"]
    found = called.normalized_arguments(net, normalize_to_only_use_kwargs=True)
    assert found.kwargs == {"input": called.args[0], "other": called.args[1], "alpha": 1}
    assert nodes["placeholder"].normalized_arguments(net) is None
    with pytest.raises(RuntimeError, match="root did not have that target"):
        normalize_module(net, "missing", ())
    assert normalize_module(net, "inner", (1,)) is None  # is no module of the framework


def test_types():
    assert create_type_hint([int, int]) == list[int]
    assert create_type_hint((Tensor, Parameter)) == tuple[Tensor, ...]
    assert create_type_hint(3) == 3
    assert type_matches(list[int], int) and type_matches(Optional[int], int)  # noqa: UP045
    assert type_matches(Tensor, Parameter) and type_matches(list[Tensor], list[Parameter])
    assert not type_matches(int, float) and not type_matches(Tensor, int)
