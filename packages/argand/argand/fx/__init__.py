"""Graphs of operator calls: `symbolic_trace`, `Graph`, `GraphModule`, `Interpreter`, passes."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from argand.import_paths import publish
from argand.symbolic import _assert
from argand_fx import *  # noqa: F403
from argand_fx import __all__ as __all__
from argand_fx import (
    graph,
    graph_module,
    immutable,
    interpreter,
    node,
    operator_schemas,
    passes,
    proxy,
    transformer,
)
from argand_fx.leaf_functions import leaf_functions
from argand_fx.passes import graph_drawer, shape_prop, split_module
from argand_fx.patterns import subgraph_rewriter

publish(
    __name__,
    {
        "graph": graph,
        "graph_module": graph_module,
        "immutable_collections": immutable,
        "interpreter": interpreter,
        "node": node,
        "operator_schemas": operator_schemas,
        "passes": passes,
        "proxy": proxy,
        "subgraph_rewriter": subgraph_rewriter,
    },
)
publish(
    f"{__name__}.passes",
    {"graph_drawer": graph_drawer, "shape_prop": shape_prop, "split_module": split_module},
)
interpreter.Transformer = transformer.Transformer  # type: ignore[attr-defined]  # where PyTorch has it


def _functions() -> Iterator[tuple[dict[str, Any], str]]:
    """Functions of tensors that are made of operators, where programs find them."""
    aten = importlib.import_module("argand_aten")
    top = [name for name in aten.__all__ if isinstance(getattr(aten, name), FunctionType)]
    names = {"argand": ["_assert", *top], "argand.functional": None, "argand.nn.functional": None}
    for path, given in names.items():
        module = importlib.import_module(path)
        for name in module.__all__ if given is None else given:
            if not name.startswith("is_") and isinstance(getattr(module, name), FunctionType):
                yield vars(module), name


leaf_functions(_functions)
node.has_side_effect(_assert)
