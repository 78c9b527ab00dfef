"""Run a graph on example inputs and note at its nodes what they compute."""

from __future__ import annotations

from typing import Any, NamedTuple

import argand_c10 as c10
from argand_c10 import Tensor
from argand_fx.interpreter import Interpreter
from argand_fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor beside its elements.

    Attributes:
        memory_format: in which it lies densely; None if in none.
        is_quantized, qparams: False and nothing, as tensors are here.
    """

    shape: tuple[int, ...]
    dtype: c10.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: c10.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The facts of a tensor; those of its order in memory with `include_contiguity`."""
    formats = (c10.contiguous_format, c10.channels_last, c10.channels_last_3d)
    dense = (f for f in formats if include_contiguity and _lies_in(result, f))
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), next(dense, None),
        False, {},
    )  # fmt: skip


def _lies_in(t: Tensor, order: c10.memory_format) -> bool:
    dims = {c10.channels_last: 4, c10.channels_last_3d: 5}.get(order, t.ndim)
    return dims == t.ndim and t.is_contiguous(memory_format=order)


class ShapeProp(Interpreter):
    """Runs a graph and notes at every node the type of what it computes (`meta["type"]`) and the facts of its tensors (`meta["tensor_meta"]`)."""

    def run_node(self, n: Node) -> Any:
        """Run one node and note what it computes."""
        result = super().run_node(n)
        found = False

        def facts(x: Any) -> Any:
            nonlocal found
            if not isinstance(x, Tensor):
                return x
            found = True
            return extract_tensor_metadata(x)

        metadata = map_aggregate(result, facts)
        if found:
            n.meta["tensor_meta"] = metadata
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """`run`."""
        return self.run(*args)
