"""The traced graph as plain data, from which a fresh process derives what the process that traced it did not need."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import argand_c10 as c10
from argand_autograd import graph_ops
from argand_c10 import Tensor
from argand_fx import GraphModule, parse
from argand_fx.parse import parse_symbolic, resolve_target
from argand_fx.schema import overload
from argand_fx.shapes import FakeTensor, GraphBuilder, ShapeEnv
from argand_fx.symbolic import SymbolicValue

__all__ = ["describe_inputs", "graph_from_files", "graph_to_files"]

_GRAPH, _FACTS = "graph.txt", "facts.json"


def describe_inputs(module: GraphModule, example_inputs: Sequence[Any]) -> list[Any]:
    """What the graph's inputs look like: per input a dictionary, or a constant."""
    nodes = [n for n in module.graph.nodes if n.op == "placeholder"]
    found: list[Any] = []
    for node, example in zip(nodes, example_inputs, strict=True):
        x = node.meta.get("val", example)
        x = example if x is None else x
        if isinstance(x, FakeTensor):
            found.append(
                {
                    "kind": "tensor",
                    "sizes": [_number(s) for s in x.shape],
                    "strides": [_number(s) for s in x.stride()],
                    "offset": _number(x.storage_offset()),
                    "dtype": x.dtype.name,
                    "device": str(x.device),
                    "requires_grad": x.requires_grad,
                }
            )
        elif isinstance(x, SymbolicValue):
            found.append({"kind": "symbol", "value": str(x)})
        else:
            found.append(
                {
                    "kind": "constant",
                    "value": x if isinstance(x, (int, float, str, type(None))) else repr(x),
                }
            )
    return found


def _number(x: Any) -> Any:
    return str(x) if isinstance(x, SymbolicValue) else int(x)


def graph_to_files(module: GraphModule, example_inputs: Sequence[Any]) -> dict[str, bytes]:
    """The graph, its constants and what its inputs look like, as files."""
    constants = {}
    files = {_GRAPH: module.graph.to_text().encode()}
    for node in module.graph.nodes:
        if node.op == "get_attr" and node.target not in constants:
            value: Any = module
            for part in node.target.split("."):
                value = getattr(value, part)
            if isinstance(value, Tensor):
                constants[node.target] = {"dtype": value.dtype.name, "sizes": list(value.shape)}
                files[f"constant{len(constants) - 1}"] = bytes(c10._C._tensor_to_bytes(value))
    facts = {
        "inputs": describe_inputs(module, example_inputs),
        "hints": _hints(module, example_inputs),
        "constants": constants,
        "no_grad": [n.name for n in module.graph.nodes if not n.meta.get("grad_enabled", True)],
    }
    return {**files, _FACTS: json.dumps(facts).encode()}


def _hints(module: GraphModule, example_inputs: Sequence[Any]) -> dict[str, int]:
    """An example's value of each symbol."""
    found: dict[str, int] = {}
    for x in (
        *example_inputs,
        *(n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"),
    ):
        sizes = [x] if isinstance(x, SymbolicValue) else []
        if isinstance(x, FakeTensor):
            sizes = [*x.shape, *x.stride()]
        for s in sizes:
            if isinstance(s, SymbolicValue) and str(s).isidentifier():
                found[str(s)] = int(s.hint)  # type: ignore[attr-defined]
    return found


def _target(name: str) -> Any:
    for function in (
        graph_ops.set_grad_mode,
        graph_ops.apply_function,
        graph_ops.require_gradients,
        graph_ops.take_gradients,
    ):
        if name.endswith(f"graph_ops.{function.__name__}"):
            return function
    try:
        return overload(name)
    except LookupError:
        return resolve_target(name)


def graph_from_files(read: Any) -> tuple[GraphModule, list[Any]]:
    """The graph and its fake inputs.

    Args:
        read: `read(name)` gives a file's content.
    """
    facts = json.loads(read(_FACTS))
    env = ShapeEnv()
    symbols: dict[str, Any] = {}
    count = max((int(name[1:]) for name in facts["hints"]), default=-1) + 1
    for i in range(count):
        name = f"s{i}"
        symbols[name] = env.create_symbol(facts["hints"].get(name, 2), name)
    graph = parse(read(_GRAPH).decode(), _target, resolve_symbol=symbols.__getitem__)
    root: dict[str, Any] = {}
    for i, (name, about) in enumerate(facts["constants"].items()):
        dtype = c10._C._dtype_by_name(about["dtype"])
        root[name] = c10._C._tensor_from_bytes(read(f"constant{i}"), dtype, about["sizes"])
    for node in graph.nodes:
        if node.op == "get_attr" and node.target not in root:
            root[node.target] = getattr(graph.owning_module, node.target)
    builder = GraphBuilder(None, env)
    inputs = [_input(builder, x, symbols) for x in facts["inputs"]]
    given = iter(inputs)
    silent = set(facts["no_grad"])
    for node in graph.nodes:
        if node.op == "placeholder":
            node.meta["val"] = next(given)
        if node.name in silent:
            node.meta["grad_enabled"] = False
    return GraphModule(root, graph), inputs


def _input(builder: GraphBuilder, x: dict[str, Any], symbols: dict[str, Any]) -> Any:
    def number(s: Any) -> Any:
        return parse_symbolic(s, symbols.__getitem__) if isinstance(s, str) else s

    if x["kind"] == "constant":
        return x["value"]
    if x["kind"] == "symbol":
        return number(x["value"])
    return FakeTensor(
        [number(s) for s in x["sizes"]],
        [number(s) for s in x["strides"]],
        number(x["offset"]),
        c10._C._dtype_by_name(x["dtype"]),
        x["device"],
        x["requires_grad"],
        builder=builder,
    )
