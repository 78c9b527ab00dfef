"""Automatic mixed precision: `autocast` regions and gradient scaling."""

from __future__ import annotations

from argand_autograd.amp import autocast, custom_bwd, custom_fwd, is_autocast_available
from argand_nn.amp import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
