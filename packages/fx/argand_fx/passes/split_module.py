"""Split a graph into submodules, which a new graph calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from argand_c10 import Module
from argand_fx.graph import Graph
from argand_fx.graph_module import GraphModule
from argand_fx.node import Node, map_arg

__all__ = ["split_module"]

_Name = Any  # what a callback returns


class _Part:
    """The nodes of one submodule.

    Attributes:
        inputs, outputs: nodes of the split graph, in the order in which they come up.
        before: the parts whose values it needs.
        inner: by a node of the split graph, the node in this part's graph.
    """

    def __init__(self, name: str, root: Module) -> None:
        self.name = name
        self.graph = Graph(root)
        self.nodes: list[Node] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.before: dict[_Name, None] = {}
        self.inner: dict[Node, Node] = {}

    def build(self, root: Module, names: dict[str, str] | None) -> GraphModule:
        """Its module, with the submodules and attributes of `root` that it uses."""
        for node in self.inputs:
            self.inner[node] = self.graph.placeholder(node.name, node.type)
            self.inner[node].meta = dict(node.meta)
        for node in self.nodes:
            self.inner[node] = self.graph.node_copy(node, self.inner.__getitem__)
            if node.op in ("call_module", "get_attr") and names is not None:
                names[f"{self.name}.{node.target}"] = node.target
        results = tuple([self.inner[node] for node in self.outputs])
        self.graph.output(results[0] if len(results) == 1 else results)
        return GraphModule(root, self.graph)


def split_module(
    m: GraphModule,
    root_m: Module,
    split_callback: Callable[[Node], _Name],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
) -> GraphModule:
    """A module that calls submodules `submod_<name>`, one for each name that the callback gives to nodes.

    Args:
        m: the module to split; it stays as it is.
        root_m: has the submodules and parameters that the graph names.
        split_callback: the name of the part in which a call goes.
        qualname_map: filled with the paths in `m` of what the submodules hold, by their paths in the result.
        keep_original_order: call the parts in the order in which the graph comes to them, else in one that their inputs allow.
        keep_original_node_name: give the results of parts with several the names of the nodes that they come from.

    Raises:
        RuntimeError: if parts need each other's results.
    """
    parts: dict[_Name, _Part] = {}
    place: dict[Node, _Name] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        name = split_callback(node)
        part = parts.setdefault(name, _Part(f"submod_{name}", root_m))
        place[node] = name
        part.nodes.append(node)
        for used in node.all_input_nodes:
            if place.get(used, parts) != name:  # `parts` is nobody's name
                part.inputs.setdefault(used)
                if used in place:
                    parts[place[used]].outputs.setdefault(used)
                    part.before.setdefault(place[used])
    for used in m.graph.output_node().all_input_nodes:
        if used in place:
            parts[place[used]].outputs.setdefault(used)
    order = list(parts) if keep_original_order else _sorted(parts)
    return _assembled(
        m, root_m, [parts[name] for name in order], qualname_map, bool(keep_original_node_name)
    )


def _sorted(parts: dict[_Name, _Part]) -> list[_Name]:
    """The parts so that each comes after those that it needs."""
    left = {name: set(part.before) for name, part in parts.items()}
    found: list[_Name] = []
    while left:
        ready = [name for name, before in left.items() if not before.intersection(left)]
        if not ready:
            raise RuntimeError("cycle exists between partitions!")
        found += ready
        for name in ready:
            del left[name]
    return found


def _assembled(
    m: GraphModule,
    root: Module,
    parts: Iterable[_Part],
    names: dict[str, str] | None,
    keep_names: bool,
) -> GraphModule:
    graph = Graph()
    held: dict[str, Any] = {}
    env: dict[Node, Node] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            env[node] = graph.node_copy(node)
            if node.op == "get_attr":
                held[node.target] = operator.attrgetter(node.target)(root)
    for part in parts:
        held[part.name] = part.build(root, names)
        missing = [node.name for node in part.inputs if node not in env]
        if missing:
            raise RuntimeError(
                f"split_module: {part.name} needs {', '.join(missing)}, which parts after it compute; change the callback, or leave "
                "out keep_original_order"
            )
        call = graph.create_node("call_module", part.name, tuple(env[n] for n in part.inputs))
        for i, node in enumerate(part.outputs):
            if len(part.outputs) == 1:
                env[node] = call
            else:
                name = node.name if keep_names else None
                env[node] = graph.create_node(
                    "call_function", operator.getitem, (call, i), name=name
                )
    output = m.graph.output_node()
    graph.output(map_arg(output.args[0], env.__getitem__))
    return GraphModule(held, graph, class_name=m._get_name())
