"""Recomputing activations in backward instead of keeping them."""

from __future__ import annotations

from argand_autograd import checkpoint, checkpoint_sequential

__all__ = ["checkpoint", "checkpoint_sequential"]
