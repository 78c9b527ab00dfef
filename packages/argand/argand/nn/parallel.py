"""Modules on several processes."""

from __future__ import annotations

from argand_distributed import DistributedDataParallel as DistributedDataParallel

__all__ = ["DistributedDataParallel"]
