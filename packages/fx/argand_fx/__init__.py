"""The graph IR: graphs of operator calls, their Python code, text, interpreters and passes."""

from argand_fx._version import __version__  # isort: skip
from argand_fx import passes
from argand_fx.graph import Graph
from argand_fx.graph_module import GraphModule
from argand_fx.interpreter import Interpreter
from argand_fx.node import Node, has_side_effect, map_aggregate, map_arg
from argand_fx.parse import ParseError, parse
from argand_fx.spec import SpecError
from argand_fx.symbolic import SymExpr, SymbolicValue

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "ParseError",
    "SpecError",
    "SymExpr",
    "SymbolicValue",
    "__version__",
    "has_side_effect",
    "map_aggregate",
    "map_arg",
    "parse",
    "passes",
]
