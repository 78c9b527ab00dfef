"""Automatic mixed precision: `autocast` regions and gradient scaling."""

from __future__ import annotations

import argand_autograd.amp
import argand_nn.amp
from argand.import_paths import publish
from argand_autograd.amp import autocast, custom_bwd, custom_fwd, is_autocast_available
from argand_nn.amp import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

publish(__name__, {"autocast_mode": argand_autograd.amp, "grad_scaler": argand_nn.amp})
