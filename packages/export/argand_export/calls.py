"""How a program is called: containers, and arguments that are part of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argand_c10 import Tensor
from argand_export import tree

__all__ = ["argument_names", "match_arguments"]

# In place of the value of an argument that is a tensor.
TENSOR = object()


def argument_names(in_tree: Any) -> list[str]:
    """How a caller writes each leaf of (args, kwargs): "args[0]['x']"."""
    args, kwargs = in_tree[1]
    return tree.paths(args, "args") + tree.paths(kwargs, "kwargs")


def match_arguments(
    in_tree: Any, values: Sequence[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """The leaves of a call's arguments, in the order of the export.

    Args:
        in_tree: the nesting of (args, kwargs) at the export.
        values: what each leaf was then; TENSOR for a tensor, which is not looked at.

    Raises:
        TypeError, ValueError: they are nested otherwise, or have other values; the message says where and what.
    """
    leaves, description = tree.flatten((args, dict(kwargs)))
    if description != in_tree:
        leaves = _reordered(in_tree, args, kwargs, description)
    for i, (leaf, value) in enumerate(zip(leaves, values, strict=True)):
        if value is TENSOR:
            continue
        if isinstance(leaf, Tensor) or type(leaf) is not type(value) or leaf != value:
            raise ValueError(
                f"exported program: got {leaf!r} for {argument_names(in_tree)[i]}, expected {value!r}, which the program was exported with"
            )
    return leaves


def _reordered(
    in_tree: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], given: Any
) -> list[Any]:
    """Leaves with keywords in the order of the export."""
    order = [key for key, _ in in_tree[1][1][1]]
    if set(order) == set(kwargs):
        leaves, description = tree.flatten((args, {key: kwargs[key] for key in order}))
        if description == in_tree:
            return leaves
    raise TypeError(
        f"exported program: got arguments nested as {given}, expected {in_tree}; call it as it was exported"
    )
