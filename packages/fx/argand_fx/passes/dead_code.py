"""Dead-code elimination."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argand_fx.graph_module import GraphModule

__all__ = ["eliminate_dead_code"]


def eliminate_dead_code(gm: GraphModule) -> bool:
    """Erase nodes whose value nothing uses and that do nothing else, in nested graphs too; True if any was."""
    changed = gm.graph.eliminate_dead_code()
    for child in gm.children():
        if isinstance(child, type(gm)) and eliminate_dead_code(child):
            child._forget_code()
            changed = True
    return changed
