"""The backend "aot_eager": forward and backward graphs, run operator by operator. The oracle of code generators."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from argand_aot.compiled_graph import CompiledGraph, load
from argand_aot.compiler import EagerGraph, compile
from argand_aot.stored_graph import graph_from_files, graph_to_files
from argand_c10.disk_cache import DiskCache
from argand_fx import GraphModule

__all__ = ["aot_eager", "load_aot_eager"]

_cache = DiskCache("aot")


class GraphProgram:
    """A functional graph as a program: its generated Python code."""

    def __init__(self, module: GraphModule, inputs: Sequence[Any]) -> None:
        self._module = module
        self._inputs = inputs
        self._run = module.forward

    def __call__(self, *inputs: Any) -> Any:
        return self._run(*inputs)

    def serialize(self) -> dict[str, Any]:
        """Data that refers to the graph in the disk cache."""
        files = graph_to_files(self._module, self._inputs)
        key = "g" + hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:40]
        kept = _cache.get(key) or _cache.put(key, files, {})
        return {"graph": key if kept is not None else None}


def _load_program(data: dict[str, Any]) -> GraphProgram | None:
    entry = _cache.get(data["graph"]) if data["graph"] is not None else None
    return None if entry is None else GraphProgram(*graph_from_files(entry.contents.__getitem__))


def aot_eager(
    module: GraphModule, example_inputs: Sequence[Any], **options: Any
) -> CompiledGraph | EagerGraph:
    """Compile a traced graph ahead of time and run the result without code generation."""
    return compile(module, example_inputs, forward_compiler=GraphProgram, backend="aot_eager")


def load_aot_eager(data: dict[str, Any]) -> CompiledGraph | None:
    """The graph that `CompiledGraph.serialize` described; None if the disk cache has lost it."""
    return load(
        data, load_program=_load_program, backward_compiler=GraphProgram, backend="aot_eager"
    )
