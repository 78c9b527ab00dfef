"""Loops and branches that tensors decide, as nodes of a graph: what they mean, and how a graph with such nodes is compiled."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

from argand_dynamo import _C
from argand_dynamo.convert_frame import Settings, compiled_function
from argand_fx import Graph, GraphModule, Node, has_side_effect

__all__ = ["compile_in_pieces", "has_control", "run_branch", "run_loop"]


def run_loop(
    cond: Callable[..., tuple[Any, ...]],
    body: Callable[..., tuple[Any, ...]],
    carried: tuple[Any, ...],
    cond_reads: tuple[Any, ...],
    body_reads: tuple[Any, ...],
) -> tuple[Any, ...]:
    """`carried = body(*carried, *body_reads)` as long as the first result of `cond(*carried, *cond_reads)` holds."""
    given = (*carried, *body_reads)
    while cond(*carried, *cond_reads)[0]:
        carried = body(*carried, *body_reads)
    return _own(carried, given)


def _own(results: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Results in memory of their own, as the graph takes them for."""
    seen = {x.untyped_storage().data_ptr() for x in given if x.numel()}
    own = []
    for x in results:
        memory = x.untyped_storage().data_ptr() if x.numel() else None
        own.append(x.clone() if memory in seen else x)
        seen.add(own[-1].untyped_storage().data_ptr())
    return tuple(own)


def run_branch(
    holds: Any,
    true_fn: Callable[..., tuple[Any, ...]],
    false_fn: Callable[..., tuple[Any, ...]],
    true_reads: tuple[Any, ...],
    false_reads: tuple[Any, ...],
) -> tuple[Any, ...]:
    """`true_fn(*true_reads)` if `holds`, else `false_fn(*false_reads)`."""
    if holds:
        return _own(true_fn(*true_reads), true_reads)
    return _own(false_fn(*false_reads), false_reads)


_CONTROL: dict[Any, None] = {run_loop: None, run_branch: None}
has_side_effect(run_loop)
has_side_effect(run_branch)


def _is_control(node: Node) -> bool:
    return node.op == "call_function" and node.target in _CONTROL


def has_control(module: GraphModule) -> bool:
    """Whether a graph has such nodes."""
    return any(map(_is_control, module.graph.nodes))


def compile_in_pieces(module: GraphModule, settings: Settings) -> Callable[..., Any]:
    """A callable that runs the control nodes in Python, and what lies between them, and their graphs, compiled.

    Each piece is a module of its own, compiled when it is first called; gradients go from piece to piece as eager ones do.
    """
    nodes = list(module.graph.nodes)
    own = Settings(settings.backend, False, settings.dynamic, settings.options, keeps=False)
    inputs = [node for node in nodes if node.op == "placeholder"]
    steps: list[Callable[[dict[Node, Any]], None]] = []
    piece: list[Node] = []
    for node in nodes:
        if node.op in ("placeholder", "get_attr"):
            continue
        inside = _is_control(node) or (node.target is operator.getitem and _is_part(node))
        if not inside and node.op != "output":
            piece.append(node)
            continue
        if piece and (_is_control(node) or node.op == "output"):
            steps.append(_piece(module, piece, own))
            piece = []
        if inside:
            steps.append(_control(module, node, own))
    last = nodes[-1]

    def run(*args: Any) -> Any:
        values = dict(zip(inputs, args, strict=True))
        for step in steps:
            step(values)
        return _filled(last.args[0], values, module)

    _C.skip_code(run.__code__)
    return run


def _compiled(module: GraphModule, own: Settings) -> Callable[..., Any]:
    if has_control(module):
        return compile_in_pieces(module, own)
    return types.MethodType(compiled_function(module.forward.__func__, own), module)


def _is_part(node: Node) -> bool:
    source = node.args[0]
    return isinstance(source, Node) and _is_control(source)


def _filled(value: Any, values: dict[Node, Any], module: GraphModule) -> Any:
    """A node's argument with the values of the nodes in it."""
    if isinstance(value, Node):
        return getattr(module, str(value.target)) if value.op == "get_attr" else values[value]
    if isinstance(value, tuple | list):
        return type(value)([_filled(x, values, module) for x in value])
    return value


def _control(module: GraphModule, node: Node, own: Settings) -> Callable[[dict[Node, Any]], None]:
    function: Any = node.target
    graphs = {
        x: _compiled(getattr(module, str(x.target)), own)
        for x in node.args
        if isinstance(x, Node) and x.op == "get_attr"
    }

    def step(values: dict[Node, Any]) -> None:
        args = [
            graphs[x] if isinstance(x, Node) and x in graphs else _filled(x, values, module)
            for x in node.args
        ]
        values[node] = function(*args)

    return step


def _piece(
    module: GraphModule, nodes: list[Node], own: Settings
) -> Callable[[dict[Node, Any]], None]:
    inside = set(nodes)
    graph, copies = Graph(), {}
    reads = dict.fromkeys(m for n in nodes for m in n.all_input_nodes if m not in inside)
    inputs = [m for m in reads if m.op != "get_attr"]
    # Sizes are read from the inputs of the whole graph.
    inputs += [m for m in module.graph.nodes if m.op == "placeholder" and m not in reads]
    for m in inputs:
        copies[m] = graph.placeholder(m.name)
        copies[m].meta = dict(m.meta)
    for m in reads:
        if m.op == "get_attr":
            copies[m] = graph.node_copy(m, copies.__getitem__)
    for n in nodes:
        copies[n] = graph.node_copy(n, copies.__getitem__)
    results = [n for n in nodes if any(user not in inside for user in n.users)]
    graph.output(tuple([copies[n] for n in results]))
    run = _compiled(GraphModule(module, graph), own)

    def step(values: dict[Node, Any]) -> None:
        found = run(*[values[m] for m in inputs])
        values.update(zip(results, found, strict=True))

    return step
