"""Backends that are made of compilers of functional graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import argand_aot

__all__ = ["aot_autograd"]

Compiler = Callable[[Any, Any], Callable[..., Any]]


def aot_autograd(
    *,
    fw_compiler: Compiler,
    bw_compiler: Compiler | None = None,
    inference_compiler: Compiler | None = None,
    decompositions: Mapping[Any, Any] | None = None,
    **kwargs: Any,
) -> Callable[..., Any]:
    """A backend for `argand.compile` whose graphs change nothing in place, forward and backward apart.

    Args:
        fw_compiler: `fw_compiler(graph_module, example_inputs)` -> a callable that returns the graph's results.
        bw_compiler: the same for backward graphs; by default `fw_compiler`.
        inference_compiler: accepted; `fw_compiler` has these graphs, too.
        decompositions: what is used in place of operators, by overload name (`argand_aot.decompose`).
        kwargs: accepted.
    """

    def backend(module: Any, example_inputs: Any, **options: Any) -> Any:
        return argand_aot.compile(
            module,
            example_inputs,
            forward_compiler=_flat(fw_compiler),
            backward_compiler=_flat(bw_compiler or fw_compiler),
            decompositions=decompositions,
        )

    return backend


def _flat(compiler: Compiler) -> Compiler:
    """The compiler, whose callables return tuples."""

    def compile(module: Any, example_inputs: Any) -> Callable[..., Any]:
        call = compiler(module, example_inputs)

        def run(*inputs: Any) -> tuple[Any, ...]:
            found = call(*inputs)
            return tuple(found) if isinstance(found, tuple | list) else (found,)

        return run

    return compile
