"""Custom autograd Functions, which stand in a graph as two subgraphs."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from argand_aot.functionalize import Functionalizer
from argand_aot.tape import TapeNode, is_differentiable
from argand_aot.values import Edge, Geometry, UnsupportedGraph, Value, map_values
from argand_c10 import Operator
from argand_fx import GraphModule, Node
from argand_fx.schema import schema_of

__all__ = ["apply", "bound_arguments", "run_module"]


class FunctionNode(TapeNode):
    """The node of a custom Function.

    Attributes:
        module: the backward graph; `kept`: what it gets first.
        positions: the argument number of each edge.
        materialize: give it zeros where no gradient flowed in.
    """

    name = "custom Function"
    derivable = False

    def __init__(
        self,
        sequence: int,
        edges: Sequence[Edge | None],
        results: Sequence[Geometry | None],
        module: GraphModule,
        kept: Sequence[Any],
        positions: Sequence[int],
        materialize: bool,
    ) -> None:
        super().__init__(sequence, edges, results)
        self.module = module
        self.kept = kept
        self.positions = positions
        self.materialize = materialize

    def backward(
        self, f: Functionalizer, grads: Sequence[Value | None], wanted: Sequence[bool]
    ) -> list[Value | None]:
        given: list[Any] = list(grads)
        if self.materialize:
            given = [
                _zeros(f, g) if x is None and g is not None else x
                for x, g in zip(given, self.results, strict=True)
            ]
        found = run_module(f, self.module, [*self.kept, *given])
        return [found[i] if want else None for i, want in zip(self.positions, wanted, strict=True)]


def _zeros(f: Functionalizer, like: Geometry) -> Value:
    zeros: Value = f.ops.zeros(list(like.shape), dtype=like.dtype, device=like.device)
    return zeros


def apply(f: Functionalizer, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """`graph_ops.apply_function` on values."""
    forward, backward, n, differentiable, materialize, *given = args
    recording, f.recording = f.recording, False
    # A graph that is differentiated later has the operators of the forward alone: their gradients stand for the Function's.
    stops, f.stops = f.stops, f.stops and not recording
    before = [x.storage.version if isinstance(x, Value) else 0 for x in given]
    try:
        found = run_module(f, forward, given)
    finally:
        f.recording, f.stops = recording, stops
    if before != [x.storage.version if isinstance(x, Value) else 0 for x in given]:
        raise UnsupportedGraph(
            "got a custom Function that changes an argument in place, expected one that does not",
            "return a new tensor from its forward",
        )
    # Results that are arguments, or views of them, are tensors of their own here.
    results = [map_values(x, f.frozen) for x in found[:n]]
    tape = f.tape
    if tape is None or not recording:
        return tuple(results)
    positions = [i for i, x in enumerate(given) if isinstance(x, Value)]
    edges = [tape.edge_of(given[i]) for i in positions]
    if all(e is None for e in edges):
        return tuple(results)
    geometries = [x.geometry if isinstance(x, Value) else None for x in results]
    kept = [map_values(x, f.frozen) for x in found[n:]]
    node = FunctionNode(
        tape.next_sequence(), edges, geometries, backward, kept, positions, materialize
    )
    node.place = tape.place
    for i, (x, flows) in enumerate(zip(results, differentiable, strict=True)):
        if isinstance(x, Value) and flows and is_differentiable(x.dtype):
            tape.set_history(x, node, i)
    return tuple(results)


def bound_arguments(op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments of a node in schema order, with defaults."""
    bound = list(args)
    for a in schema_of(op).arguments[len(bound) :]:
        if a.name in kwargs:
            bound.append(kwargs[a.name])
        else:
            bound.append(list(a.default) if isinstance(a.default, list) else a.default)
    return bound


def run_module(f: Functionalizer, module: GraphModule, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Run a subgraph of operators on values; returns its results as a tuple."""
    env: dict[Node, Any] = {}
    given = iter(inputs)

    def values(x: Any) -> Any:
        if isinstance(x, Node):
            return env[x]
        if isinstance(x, (list, tuple)):
            return (
                type(x)([values(v) for v in x])
                if type(x) in (list, tuple)
                else [values(v) for v in x]
            )
        return x

    for node in module.graph.nodes:
        if node.op == "placeholder":
            env[node] = next(given)
        elif node.op == "output":
            found = values(node.args[0])
            return tuple(found) if isinstance(found, (list, tuple)) else (found,)
        elif node.op == "call_function" and isinstance(node.target, Operator):
            kwargs = {k: values(v) for k, v in node.kwargs.items()}
            bound = bound_arguments(node.target, values(node.args), kwargs)
            env[node] = f.run(node.target, bound, node.meta.get("val"))
        elif node.op == "call_function" and node.target is operator.getitem:
            env[node] = values(node.args[0])[node.args[1]]
        elif node.op == "call_function" and getattr(node.target, "__name__", "") == "set_grad_mode":
            continue  # gradients are off, or derived by graph rewrites, either way
        else:
            raise UnsupportedGraph(
                f"{node.name}: got a {node.op} node inside of a custom Function, expected operators"
            )
    raise UnsupportedGraph("got a graph of a custom Function without an output")
