"""Traces Python bytecode into graphs, with guards and frame plans."""

from __future__ import annotations

import importlib

import argand_autograd  # noqa: F401  (completes Tensor)
import argand_c10

argand_c10.check_abi("argand-dynamo", built_for=2)

from argand_c10.tracing import is_compiling, is_exporting  # noqa: E402
from argand_dynamo.api import (  # noqa: E402  (the ABI is checked first)
    OptimizedModule,
    allow_in_graph,
    compile,
    disable,
    get_default_backend,
    graph_break,
    reset,
    set_default_backend,
)
from argand_dynamo.backends import list_backends, register_backend  # noqa: E402
from argand_dynamo.configuration import config  # noqa: E402
from argand_dynamo.exceptions import GraphBreak, RecompileLimitError  # noqa: E402
from argand_dynamo.history import mark_dynamic, mark_static  # noqa: E402
from argand_dynamo.stance import set_stance  # noqa: E402

__version__ = "0.1.0"
__all__ = [
    "GraphBreak",
    "OptimizedModule",
    "RecompileLimitError",
    "allow_in_graph",
    "compile",
    "config",
    "disable",
    "explain",
    "get_default_backend",
    "graph_break",
    "is_compiling",
    "is_exporting",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "register_backend",
    "reset",
    "set_default_backend",
    "set_stance",
]


def explain(fn: object, *args: object, **kwargs: object) -> object:
    """Trace a call of a function or Module and say what comes of it: graphs, breaks, guards.

    Args:
        fn: a function or Module.
        args, kwargs: of the call; without any, `explain(fn)` returns a function that takes them.

    Returns:
        An `argand_dynamo.explanation.Explanation`; print it.
    """
    module = importlib.import_module("argand_dynamo.explanation")
    return module.explain(fn, *args, **kwargs)
