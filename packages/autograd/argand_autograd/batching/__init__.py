"""Operators on all entries of a dimension at once: what `vmap` calls its function with."""

from __future__ import annotations

from argand_autograd.batching import (  # noqa: F401  (they register rules)
    indexing,
    losses,
    matrices,
    networks,
    shapes,
)
from argand_autograd.batching.level import (
    NotBatchable,
    give_up,
    is_entry,
    runs_at_once,
    shares_history,
    try_at_once,
)
from argand_autograd.batching.rules import install

__all__ = ["NotBatchable", "give_up", "is_entry", "runs_at_once", "shares_history", "try_at_once"]

install()
