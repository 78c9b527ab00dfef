"""How a graph's symbols get their numbers: each is a size or stride of an input, or an input itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argand_fx.node import Node
from argand_fx.symbolic import SymbolicValue, symbol_names

__all__ = ["Binding", "node_bindings", "symbol_bindings"]

# ("size" | "stride", dimension) of the placeholder's tensor, or ("value", 0): the placeholder itself.
Binding = tuple[str, int]


def node_bindings(node: Node) -> dict[str, Binding]:
    """The symbols that a placeholder can give: from meta["binds"], else from meta["val"]."""
    if "binds" in node.meta:
        return dict(node.meta["binds"])
    value: Any = node.meta.get("val")
    found: dict[str, Binding] = {}
    if isinstance(value, SymbolicValue):
        names = symbol_names(value)
        if len(names) == 1 and str(value) == names[0]:
            found[names[0]] = ("value", 0)
    elif value is not None and hasattr(value, "shape") and hasattr(value, "stride"):
        for kind, numbers in (("size", value.shape), ("stride", value.stride())):
            for i, number in enumerate(numbers):
                if isinstance(number, SymbolicValue):
                    name = str(number)
                    if name.isidentifier():
                        found.setdefault(name, (kind, i))
    return found


def symbol_bindings(placeholders: Iterable[Node]) -> dict[str, tuple[Node, Binding]]:
    """The first input that gives each symbol."""
    found: dict[str, tuple[Node, Binding]] = {}
    for node in placeholders:
        for symbol, binding in node_bindings(node).items():
            found.setdefault(symbol, (node, binding))
    return found
