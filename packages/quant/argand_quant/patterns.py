"""What a node of a program's graph is, as quantizers and converters see it."""

from __future__ import annotations

import operator
from collections.abc import Iterator

from argand_c10 import Operator, float32
from argand_fx import Node
from argand_fx.shapes import FakeTensor

__all__ = [
    "CLAMPS",
    "CONSTANT",
    "DEQUANTIZE",
    "MOVEMENT",
    "POOLING",
    "QUANTIZE",
    "inputs_of",
    "is_constant",
    "is_float",
    "name_of",
    "result_of",
    "sole_user",
]

CONSTANT = (
    "parameter"  # of a placeholder's meta: the name of the unchanging tensor that it stands for
)
QUANTIZE = "quantized_decomposed::quantize_per_tensor"
DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor"

# Their elements are elements of their inputs: what holds for an element before holds after.
MOVEMENT = frozenset(
    (
        "cat",
        "clone",
        "contiguous",
        "expand",
        "flatten",
        "permute",
        "reshape",
        "select",
        "slice",
        "squeeze",
        "squeeze.dim",
        "squeeze.dims",
        "transpose",
        "unsqueeze",
        "view",
    )
)
CLAMPS = frozenset(("hardtanh", "relu"))
POOLING = frozenset(("adaptive_avg_pool2d", "avg_pool2d", "max_pool2d_with_indices"))


def name_of(node: Node) -> str:
    """The operator that a node calls; "" where it calls none."""
    return str(node.target.name) if isinstance(node.target, Operator) else ""


def is_float(node: Node) -> bool:
    """Whether its value is a float32 tensor."""
    value = node.meta.get("val")
    return isinstance(value, FakeTensor) and value.dtype == float32


def is_constant(node: Node) -> bool:
    """Whether its value is a tensor that never changes."""
    return node.op == "get_attr" or CONSTANT in node.meta


def inputs_of(node: Node) -> Iterator[Node]:
    """The float tensors that it uses."""
    return (n for n in node.all_input_nodes if is_float(n))


def result_of(node: Node) -> Node | None:
    """The node of its result: itself, or what picks the first of several, if the others are not used."""
    if isinstance(node.meta.get("val"), FakeTensor):
        return node
    used = [u for u in node.users if u.users]
    if len(used) == 1 and used[0].target is operator.getitem and used[0].args[1] == 0:
        return used[0]
    return None


def sole_user(node: Node) -> Node | None:
    """The only node that uses its value."""
    return next(iter(node.users)) if len(node.users) == 1 else None
