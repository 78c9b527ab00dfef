"""Rewrites of functional graphs that other packages register for their operators; they run just before graphs are lowered.

A rewrite works for compiled functions and for packages alike. Its graph is a copy of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from argand_c10 import Operator

__all__ = ["register_graph_pass", "run_graph_passes"]

# rewrite(gm): changes the graph in place; new nodes carry `meta["val"]`, and results keep shape, dtype and strides.
GraphPass = Callable[[Any], None]
_passes: dict[str, GraphPass] = {}


def register_graph_pass(namespace: str, rewrite: GraphPass) -> None:
    """Let `rewrite` see each graph that calls an operator of the namespace ("ns" of "ns::add")."""
    _passes[namespace] = rewrite


def run_graph_passes(gm: Any) -> Any:
    """The graph after the rewrites of the namespaces that it calls; itself where there are none."""
    if not _passes:
        return gm
    found = {
        node.target.name.partition("::")[0]
        for node in gm.graph.nodes
        if isinstance(node.target, Operator) and "::" in node.target.name
    }
    chosen = [rewrite for namespace, rewrite in _passes.items() if namespace in found]
    if chosen:
        gm = copy.copy(gm)
        for rewrite in chosen:
            rewrite(gm)
    return gm
