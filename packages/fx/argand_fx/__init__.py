"""The graph IR: graphs of operator calls, their Python code, text, interpreters, tracer, passes and patterns."""

from argand_fx._version import __version__  # isort: skip
from argand_fx import passes, spec
from argand_fx.artifact import BackendArtifact
from argand_fx.draw import draw_svg
from argand_fx.graph import Graph
from argand_fx.graph_module import GraphModule
from argand_fx.interpreter import Interpreter
from argand_fx.node import Node, has_side_effect, map_aggregate, map_arg
from argand_fx.parse import ParseError, parse, resolve_target
from argand_fx.patterns import (
    Match,
    SubgraphMatcher,
    replace_pattern,
    replace_pattern_with_filters,
)
from argand_fx.proxy import Proxy, TraceError
from argand_fx.spec import SpecError
from argand_fx.symbolic import SymbolicValue, SymExpr
from argand_fx.tracer import PH, Tracer, TracerBase, symbolic_trace, wrap
from argand_fx.transformer import Transformer

__all__ = [
    "PH",
    "BackendArtifact",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Match",
    "Node",
    "ParseError",
    "Proxy",
    "SpecError",
    "SubgraphMatcher",
    "SymExpr",
    "SymbolicValue",
    "TraceError",
    "Tracer",
    "TracerBase",
    "Transformer",
    "__version__",
    "draw_svg",
    "has_side_effect",
    "map_aggregate",
    "map_arg",
    "parse",
    "passes",
    "replace_pattern",
    "replace_pattern_with_filters",
    "resolve_target",
    "spec",
    "symbolic_trace",
    "wrap",
]
