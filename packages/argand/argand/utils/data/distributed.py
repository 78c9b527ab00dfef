"""Sampling for several processes."""

from __future__ import annotations

from argand_distributed import DistributedSampler

__all__ = ["DistributedSampler"]
