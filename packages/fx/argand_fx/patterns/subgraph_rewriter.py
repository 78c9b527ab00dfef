"""Replacing patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argand_c10 import Module
from argand_fx.graph import Graph
from argand_fx.graph_module import GraphModule
from argand_fx.node import Node, map_arg
from argand_fx.patterns.matcher import Match, SubgraphMatcher
from argand_fx.tracer import symbolic_trace

__all__ = ["replace_pattern", "replace_pattern_with_filters"]

Pattern = Callable[..., Any] | Module | Graph
Filter = Callable[[Match, Graph, Graph], bool]


def replace_pattern(gm: GraphModule, pattern: Pattern, replacement: Pattern) -> list[Match]:
    """Replace each non-overlapping occurrence of `pattern` in the module's graph by `replacement`.

    Args:
        gm: changed in place.
        pattern, replacement: functions or modules, which are traced, or graphs; their parameters
            correspond by position, as do their results.

    Returns:
        The occurrences; `nodes_map` names nodes that are gone now.
    """
    return replace_pattern_with_filters(gm, pattern, replacement)


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Pattern,
    replacement: Pattern,
    match_filters: tuple[Filter, ...] | list[Filter] = (),
    ignore_literals: bool = False,
) -> list[Match]:
    """`replace_pattern` for the occurrences that every filter accepts.

    Args:
        gm, pattern, replacement: as in `replace_pattern`.
        match_filters: called with the match, the graph and the pattern's graph.
        ignore_literals: constants among the pattern's arguments need not be equal.
    """
    pattern_graph, _ = _graph_of(pattern)
    new, new_root = _graph_of(replacement)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    new_inputs = new.find_nodes(op="placeholder")
    if len(new_inputs) != len(matcher.placeholders):
        raise ValueError(
            f"replace_pattern: the pattern has {len(matcher.placeholders)} parameters, the replacement "
            f"{len(new_inputs)}; expected the same number"
        )
    value = new.output_node().args[0]
    count = len(value) if isinstance(value, list | tuple) else 1
    if count != len(matcher.results):
        raise ValueError(
            f"replace_pattern: the pattern has {len(matcher.results)} results, the replacement {count}; "
            "expected the same number"
        )
    _share_attributes(gm, new, new_root)
    done: list[Match] = []
    replaced: dict[Node, Any] = {}  # results of earlier occurrences may be inputs of later ones
    for match in matcher.match(gm.graph):
        if all(accept(match, gm.graph, pattern_graph) for accept in match_filters) and (
            _replace_one(gm.graph, match, new, new_inputs, replaced)
        ):
            done.append(match)
    if done:
        gm._forget_code()
    return done


def _replace_one(
    graph: Graph, match: Match, new: Graph, new_inputs: list[Node], replaced: dict[Node, Any]
) -> bool:
    values: dict[Node, Any] = {}
    for node, value in zip(new_inputs, match.placeholders, strict=True):
        while isinstance(value, Node) and value in replaced:
            value = replaced[value]
        values[node] = value
    place = _place(graph, match, list(values.values()))
    if place is None:
        return False
    old = set(match.internal_nodes)
    made: list[Node] = []
    with graph.inserting_before(place):
        for node in new.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "output":
                break
            values[node] = graph.node_copy(node, values.__getitem__)
            made.append(values[node])
    results = map_arg(new.output_node().args[0], values.__getitem__)
    outputs = results if isinstance(results, list | tuple) else (results,)
    for node, output in zip(match.returning_nodes, outputs, strict=True):
        if isinstance(output, Node):
            node.replace_all_uses_with(output, lambda user: user not in old and user not in made)
            if output in made and "val" in node.meta:
                output.meta["val"] = node.meta["val"]
        else:
            for user in list(node.users):
                user.replace_input_with(node, output)
        replaced[node] = output
    for node in made:
        for key in ("location", "stack", "grad_enabled"):
            node.meta.pop(key, None)
            if key in match.anchor.meta:
                node.meta[key] = match.anchor.meta[key]
    for node in reversed(list(graph.nodes)):
        if node in old and not node.users:
            graph.erase_node(node)
    return True


def _place(graph: Graph, match: Match, inputs: list[Any]) -> Node | None:
    """The node before which the replacement goes: after its inputs, before all users of its results; None if there is none."""
    position = {node: i for i, node in enumerate(graph.nodes)}
    old = match.internal_nodes
    candidates = [max(old, key=position.__getitem__)]
    for result in match.returning_nodes:
        candidates += [user for user in result.users if user not in old]
    place = min(candidates, key=position.__getitem__)
    inputs = [value for value in inputs if isinstance(value, Node)]
    return place if all(position[value] < position[place] for value in inputs) else None


def _graph_of(pattern: Pattern) -> tuple[Graph, Module | None]:
    if isinstance(pattern, Graph):
        return pattern, pattern.owning_module
    if isinstance(pattern, GraphModule):
        return pattern.graph, pattern
    traced = symbolic_trace(pattern)
    return traced.graph, traced


def _share_attributes(gm: GraphModule, new: Graph, root: Module | None) -> None:
    """Put what the replacement names into the module, if it is not there."""
    for node in new.nodes:
        if node.op in ("get_attr", "call_module") and root is not None:
            owner: Any = gm
            for name in node.target.split("."):
                owner = getattr(owner, name, None)
            if owner is None:
                value: Any = root
                for name in node.target.split("."):
                    value = getattr(value, name)
                gm.add_attribute(node.target, value)
