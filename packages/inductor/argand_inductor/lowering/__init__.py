"""From a graph of operators to loops and operator calls: one module a kind of operator."""

from argand_inductor.lowering.graph import LoweredGraph, lower_graph

__all__ = ["LoweredGraph", "lower_graph"]
