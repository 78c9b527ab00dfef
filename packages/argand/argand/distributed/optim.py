"""Optimizers on several processes."""

from __future__ import annotations

from argand_distributed import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
