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
    is_entry,
    run_again,
    run_entries,
    runs_at_once,
    shares_history,
)
from argand_autograd.batching.rules import install

__all__ = ["NotBatchable", "is_entry", "run_again", "run_entries", "runs_at_once", "shares_history"]

install()
