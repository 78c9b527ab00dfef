"""Converted graphs with less in them: what quantize and dequantize make needless, bit for bit."""

from __future__ import annotations

import math
from typing import Any

import argand_aten as aten
from argand_c10 import float32
from argand_fx import GraphModule, Node
from argand_fx.shapes import FakeTensor, GraphBuilder, ShapeEnv, SymInt
from argand_quant.layers import LAYER
from argand_quant.patterns import DEQUANTIZE, MOVEMENT, QUANTIZE, name_of, sole_user

__all__ = ["shape_env", "simplify"]


def simplify(module: GraphModule) -> None:
    """Move integers where numbers were moved, and leave out clamps that quantization repeats; the integers stay the same."""
    _sink_movement(module)
    _drop_clamps(module)
    module.graph.eliminate_dead_code()
    module.recompile()


def shape_env(module: GraphModule) -> ShapeEnv | None:
    """Where the program's symbolic sizes live."""
    for node in module.graph.nodes:
        for size in node.meta["val"].shape if node.op == "placeholder" else ():
            if isinstance(size, SymInt):
                return size.env
    return None


def _drop_clamps(module: GraphModule) -> None:
    """A clamp, as relu, whose only user is a quantize that saturates within its limits."""
    for node in list(module.graph.nodes):
        limits = _limits(node)
        user = sole_user(node)
        if limits is None or user is None or name_of(user) != QUANTIZE:
            continue
        quantize: Any = user.target
        ends = quantize(aten.tensor(limits, dtype=float32), *user.args[1:])
        if ends.tolist() == list(user.args[3:5]):
            node.replace_all_uses_with(node.args[0])


def _limits(node: Node) -> tuple[float, float] | None:
    """Between which values a node clamps its input."""
    if name_of(node) == "relu":
        return 0.0, math.inf
    if name_of(node) == "hardtanh" and not node.kwargs:
        limits: list[Any] = [*node.args[1:], *(-1.0, 1.0)[len(node.args) - 1 :]]
        low, high = limits
        return float(low), float(high)
    return None


def _sink_movement(module: GraphModule) -> None:
    """Move integers where numbers were moved: dequantize, movement, quantize with the same parameters is that movement of the integers."""
    graph = module.graph
    builder = GraphBuilder(graph, shape_env(module))
    for node in list(graph.nodes):
        moved: Any = node.args[0] if name_of(node) == QUANTIZE else None
        if moved is None or name_of(moved) not in MOVEMENT:
            continue
        sources = moved.all_input_nodes
        if any(name_of(s) != DEQUANTIZE or s.args[1:] != node.args[1:] for s in sources):
            continue
        with graph.inserting_before(node):
            made = builder.call(moved.target, _integers(moved.args), _integers(moved.kwargs))
        made.node.meta |= {k: v for k, v in moved.meta.items() if k in ("location", "stack", LAYER)}
        node.replace_all_uses_with(made.node)


def _integers(x: Any) -> Any:
    """Arguments with the integers in the place of dequantized tensors, as fake tensors."""
    if isinstance(x, Node):
        found: Any = x.args[0]
        fake: FakeTensor = found.meta["val"]
        fake.node = found
        return fake
    if isinstance(x, dict):
        return {k: _integers(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        items = [_integers(v) for v in x]
        return tuple(items) if isinstance(x, tuple) else items
    return x
