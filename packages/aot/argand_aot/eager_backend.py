"""The backend "aot_eager": forward and backward graphs, run operator by operator. The oracle of code generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argand_fx import GraphModule

from argand_aot.compiler import CompiledGraph, EagerGraph, compile

__all__ = ["aot_eager"]


def _run_module(module: GraphModule, inputs: Sequence[Any]) -> Any:
    return module.forward


def aot_eager(
    module: GraphModule, example_inputs: Sequence[Any], **options: Any
) -> CompiledGraph | EagerGraph:
    """Compile a traced graph ahead of time and run the result without code generation."""
    return compile(module, example_inputs, forward_compiler=_run_module)
