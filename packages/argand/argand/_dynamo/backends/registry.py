"""Names of backends, as PyTorch gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import argand_dynamo
from argand.compiler import list_backends
from argand_dynamo.backends import lookup_backend

__all__ = ["list_backends", "lookup_backend", "register_backend"]


def register_backend(
    compiler_fn: Callable[..., Any] | None = None,
    name: str | None = None,
    tags: Sequence[str] = (),
) -> Any:
    """Make `backend=name` of `argand.compile` mean a function; a decorator without one.

    Args:
        compiler_fn: `compiler_fn(graph_module, example_inputs)` -> a callable of as many inputs.
        name: by default the function's.
        tags: accepted.
    """
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name, tags)
    argand_dynamo.register_backend(name or compiler_fn.__name__, compiler_fn)
    return compiler_fn
