"""Common-subexpression elimination."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argand_c10 import Operator
from argand_fx.effects import may_alias
from argand_fx.node import Node
from argand_fx.symbolic import SymbolicValue

if TYPE_CHECKING:
    from argand_fx.graph_module import GraphModule

__all__ = ["eliminate_common_subexpressions"]


def eliminate_common_subexpressions(gm: GraphModule) -> bool:
    """Let equal computations be done once; True if any was merged.

    Two calls are equal if they call the same pure operator or function with the same arguments under the same grad mode.
    Calls that write, draw random numbers or have other effects are never merged, nor is anything that reads or shares
    memory that is written anywhere in the graph.
    """
    graph = gm.graph
    written = _written(list(graph.nodes))
    seen: dict[Any, Node] = {}
    changed = False
    for node in graph.nodes:
        if node.op not in ("call_function", "get_attr") or node in written or node.is_impure():
            continue
        if not written.isdisjoint(node._inputs):
            continue  # it reads what a write between the two may have changed
        if node.op == "call_function" and not isinstance(node.target, Operator):
            module = getattr(node.target, "__module__", "")
            if module not in ("_operator", "math"):
                continue  # an unknown function may give another value each time
        key = (
            node.op,
            node.target,
            node.meta.get("grad_enabled", True),
            _key(node.args),
            _key(node.kwargs),
        )
        try:
            first = seen.setdefault(key, node)
        except TypeError:
            continue  # an argument that cannot be hashed
        if first is not node:
            node.replace_all_uses_with(first)
            graph.erase_node(node)
            changed = True
    return changed


def _key(value: Any) -> Any:
    """A hashable form in which values are equal exactly if a node may take either: 1, 1.0 and True differ."""
    if isinstance(value, list | tuple):
        return (type(value).__name__, *map(_key, value))
    if isinstance(value, dict):
        return ("dict", *((key, _key(item)) for key, item in sorted(value.items())))
    if isinstance(value, slice):
        return ("slice", _key(value.start), _key(value.stop), _key(value.step))
    if isinstance(value, float):
        return ("float", value.hex())
    if isinstance(value, complex):
        return ("complex", value.real.hex(), value.imag.hex())
    if isinstance(value, SymbolicValue):
        return ("symbolic", str(value))
    return value if isinstance(value, Node) else (type(value), value)


def _written(nodes: list[Node]) -> set[Node]:
    """The nodes that may share memory with something that is written.

    A write's target shares with the views it comes from and with all views of those. Whether an operator's result shares
    with an argument follows from its schema; of other calls it is taken for granted, and inputs and attributes may share
    with each other.
    """
    leader: dict[Node, Node] = {}

    def find(node: Node) -> Node:
        while leader.get(node, node) is not node:
            node = leader[node]
        return node

    targets: list[Node] = []
    outside: Node | None = None
    for node in nodes:
        if node.op == "output":
            continue
        if node.op in ("placeholder", "get_attr"):
            outside = outside or node
            leader[find(node)] = find(outside)
            continue
        operator = node.target if isinstance(node.target, Operator) else None
        if node.is_impure() and not (operator and not any("!" in s for s in operator.schemas)):
            targets += node._inputs
            targets.append(node)
        if operator is None or may_alias(operator):
            for used in node._inputs:
                leader[find(used)] = find(node)
    roots = {find(node) for node in targets}
    return {node for node in nodes if find(node) in roots} if roots else set()
