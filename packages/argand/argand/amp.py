"""Automatic mixed precision: `autocast` regions and gradient scaling."""

from __future__ import annotations

import argand_autograd.amp
import argand_nn.amp
from argand.import_paths import publish
from argand_autograd.amp import autocast, custom_bwd, custom_fwd, is_autocast_available
from argand_nn.amp import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


class _DeviceGradScaler(GradScaler):
    """A scaler for one type of device, which is no argument."""

    _device: str

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            self._device, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


publish(__name__, {"autocast_mode": argand_autograd.amp, "grad_scaler": argand_nn.amp})
