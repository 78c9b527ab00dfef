"""Elements of fake tensors that follow from the graph alone."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from argand_c10 import Operator, Tensor
from argand_fx.effects import has_effect
from argand_fx.node import Node, map_arg

if TYPE_CHECKING:
    from argand_fx.shapes.builder import GraphBuilder
    from argand_fx.shapes.fake_tensor import FakeTensor

__all__ = ["known_elements"]

_MOST_ELEMENTS, _MOST_NODES = 4096, 64


def known_elements(fake: FakeTensor) -> Tensor | None:
    """The tensor itself, where operators make it of literals and nothing has written to it; else None."""
    if fake.node is None or fake.builder is None:
        return None
    try:
        found: Tensor = _value(fake.node, fake.builder, {})
    except Exception:  # one of them is no literal's, or the graph will raise it
        return None
    return found


def _value(node: Node, builder: GraphBuilder, values: dict[Node, Any]) -> Any:
    if node not in values:
        if len(values) >= _MOST_NODES or not _follows(node, builder.literals):
            raise LookupError(f"{node}: elements that are not known")
        if node.op == "get_attr":
            values[node] = builder.constants[str(node.target)]
        else:
            args, kwargs = map_arg((node.args, node.kwargs), lambda n: _value(n, builder, values))
            function: Any = node.target
            values[node] = function(*args, **kwargs)
    return values[node]


def _follows(node: Node, literals: set[str]) -> bool:
    if node.op == "get_attr":
        return str(node.target) in literals and _is_small(node.meta.get("val"))
    op: Any = node.target
    if node.op != "call_function" or not (isinstance(op, Operator) or op is operator.getitem):
        return False
    if isinstance(op, Operator) and (has_effect(op) or "empty" in op.name):
        return False
    return _is_small(node.meta.get("val"))


def _is_small(value: Any) -> bool:
    """Whether a fake is small, on the CPU and as its operator has made it; of tuples, each."""
    if isinstance(value, tuple | list):
        return all(map(_is_small, value))
    if type(value).__name__ != "FakeTensor":
        return False
    sizes = [*value.shape, *value.strides]
    return (
        all(type(n) is int for n in sizes)
        and value.numel() <= _MOST_ELEMENTS
        and value.device.type == "cpu"
        and not value.storage.version
    )
