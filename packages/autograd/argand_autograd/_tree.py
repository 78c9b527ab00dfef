"""Nested dicts, lists and tuples, flattened and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["flatten", "flatten_as", "map_tree", "unflatten"]

_LEAF = object()


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves in order (dicts in their own), and the structure that `unflatten` takes."""
    leaves: list[Any] = []

    def walk(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: walk(value) for key, value in node.items()}
        if isinstance(node, tuple) and hasattr(node, "_fields"):
            return type(node)(*(walk(value) for value in node))
        if isinstance(node, tuple | list):
            return type(node)(walk(value) for value in node)
        leaves.append(node)
        return _LEAF

    structure = walk(tree)
    return leaves, structure


def flatten_as(structure: Any, tree: Any) -> list[Any] | None:
    """The leaves of a tree in the order of `structure`, where dicts may have another; None if it is structured otherwise."""
    if flatten(tree)[1] != structure:
        return None
    leaves: list[Any] = []

    def walk(node: Any, like: Any) -> None:
        if like is _LEAF:
            leaves.append(node)
        elif isinstance(like, dict):
            for key, part in like.items():
                walk(node[key], part)
        else:
            for one, part in zip(node, like, strict=True):
                walk(one, part)

    walk(tree, structure)
    return leaves


def unflatten(structure: Any, leaves: list[Any]) -> Any:
    """The inverse of `flatten`."""
    rest: Iterator[Any] = iter(leaves)

    def build(node: Any) -> Any:
        if node is _LEAF:
            return next(rest)
        if isinstance(node, dict):
            return {key: build(value) for key, value in node.items()}
        if isinstance(node, tuple) and hasattr(node, "_fields"):
            return type(node)(*(build(value) for value in node))
        return type(node)(build(value) for value in node)

    return build(structure)


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with `function` applied to every leaf."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [function(leaf) for leaf in leaves])
