"""Graphs of operator calls: `symbolic_trace`, `Graph`, `GraphModule`, `Interpreter`, passes."""

from __future__ import annotations

from argand.import_paths import publish
from argand_fx import *  # noqa: F403
from argand_fx import __all__ as __all__
from argand_fx import graph, graph_module, immutable, interpreter, node, passes, proxy, transformer
from argand_fx.patterns import subgraph_rewriter

publish(
    __name__,
    {
        "graph": graph,
        "graph_module": graph_module,
        "immutable_collections": immutable,
        "interpreter": interpreter,
        "node": node,
        "passes": passes,
        "proxy": proxy,
        "subgraph_rewriter": subgraph_rewriter,
    },
)
interpreter.Transformer = transformer.Transformer  # type: ignore[attr-defined]  # where PyTorch has it
