"""symbolic_trace records what the peer's records: the same nodes, with the same names, in the same order."""

from __future__ import annotations

import math
from typing import Any

import models
import pytest
import torch
import torch.fx

import argand
import argand.fx


def arithmetic(T: Any, x: Any, y: Any) -> Any:
    a = (x + 1) * y - 2 / x
    return -a, abs(a), a**2, a @ y, a > 0, 3 - a, a // 2, a % 3, ~(a > y), (a > 0) & (y > 0)


def indexing(T: Any, x: Any, y: Any) -> Any:
    a, b = x[0], x[:, 1:]
    c, d = x.split(1)
    return a[..., None], b[y], c.shape[0], d.size(0), x[1:, 0].T


def functions(T: Any, x: Any, y: Any) -> Any:
    a = T.relu(T.add(x, y, alpha=2))
    b = T.cat([a, x], dim=0)
    return T.sum(b, dim=-1), T.where(a > 0, a, y), T.stack((a, b)), T.matmul(a, y.transpose(0, 1))


def methods(T: Any, x: Any, y: Any) -> Any:
    size = x.size()
    a = x.view(size[0], -1).permute(1, 0).contiguous()
    a = a.masked_fill(y.eq(0), 1.0).add_(1)
    return a.sum(dim=0, keepdim=True).float(), math.sqrt(x.size(-1)), a.mean().exp()


def defaults(x: Any, y: Any = 2, *rest: Any, **named: Any) -> Any:
    return x + y + rest[0] + named["z"]


def nodes(graph: Any) -> list[tuple[str, str]]:
    """Opcode and name of each node."""
    return [(n.op, plain(n)) for n in graph.nodes]


def plain(node: Any) -> str:
    """The node's name; the peer writes the stars of `*args` as an underscore."""
    return str(node.name).lstrip("_")


def compare(mine: Any, theirs: Any) -> None:
    assert nodes(mine) == nodes(theirs)
    for my, other in zip(mine.nodes, theirs.nodes, strict=True):
        assert [plain(n) for n in my.all_input_nodes] == [plain(n) for n in other.all_input_nodes]
        assert [plain(n) for n in my.users] == [plain(n) for n in other.users]
        assert len(my.args) == len(other.args) and my.kwargs.keys() == other.kwargs.keys()


@pytest.mark.parametrize("program", [arithmetic, indexing, functions, methods])
def test_programs_give_the_same_nodes(program: Any):
    mine = argand.fx.symbolic_trace(lambda x, y: program(argand, x, y))
    compare(mine.graph, torch.fx.symbolic_trace(lambda x, y: program(torch, x, y)).graph)


def test_signatures_give_the_same_inputs():
    compare(argand.fx.symbolic_trace(defaults).graph, torch.fx.symbolic_trace(defaults).graph)


def test_models_give_the_same_modules():
    mine = argand.fx.symbolic_trace(models.define_resnet(argand)()).graph
    theirs = torch.fx.symbolic_trace(models.define_resnet(torch)()).graph
    assert nodes(mine) == nodes(theirs)
    assert [n.target for n in mine.find_nodes(op="call_module")] == [
        n.target for n in theirs.find_nodes(op="call_module")
    ]
