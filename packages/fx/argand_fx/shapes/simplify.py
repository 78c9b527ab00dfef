"""Rewriting a graph by what its guards say of its symbols."""

from __future__ import annotations

from typing import Any

from argand_fx.graph import Graph
from argand_fx.node import map_aggregate
from argand_fx.shapes.fake_tensor import FakeTensor
from argand_fx.shapes.shape_env import ShapeEnv
from argand_fx.shapes.sym_int import SymInt

__all__ = ["simplify_symbols"]


def simplify_symbols(graph: Graph, env: ShapeEnv) -> bool:
    """Replace symbols that guards made equal to others or to numbers, in arguments and in `meta["val"]`, also of subgraphs.

    Two inputs of one symbolic size then have the same symbol, so that loops over them are seen to be alike. Inputs that
    are symbolic numbers themselves stay: they bind their symbols.

    Returns:
        Whether anything could be replaced.
    """
    if not env.has_replacements:
        return False
    seen: set[int] = set()

    def argument(x: Any) -> Any:
        return env.simplify(x) if type(x) is SymInt else x

    def value(x: Any) -> Any:
        if type(x) is FakeTensor:
            if id(x) not in seen:
                seen.add(id(x))
                x.simplify(env)
            return x
        if isinstance(inner := getattr(x, "graph", None), Graph):
            simplify_symbols(inner, env)
        return argument(x)

    for node in graph.nodes:
        if any(
            type(x) is not int and type(x) is not str for x in (*node.args, *node.kwargs.values())
        ):
            node._set_arguments(
                map_aggregate(node.args, argument), map_aggregate(node.kwargs, argument)
            )
        found = node.meta.get("val")
        if type(found) is FakeTensor or node.op != "placeholder" and found is not None:
            node.meta["val"] = (
                value(found) if type(found) is FakeTensor else map_aggregate(found, value)
            )
    return True
