"""`argand.amp` with the CPU as the device type, under the names of `torch.cpu.amp`."""

from __future__ import annotations

from argand.amp import _DeviceGradScaler
from argand.amp import autocast as _autocast
from argand_c10 import bfloat16
from argand_c10 import dtype as _dtype

__all__ = ["GradScaler", "autocast"]


class GradScaler(_DeviceGradScaler):
    """`argand.amp.GradScaler("cpu", ...)`.

    Args:
        init_scale, growth_factor, backoff_factor, growth_interval, enabled: as there.
    """

    _device = "cpu"


class autocast(_autocast):
    """`argand.amp.autocast("cpu", ...)`.

    Args:
        enabled: False makes a region without casts.
        dtype: bfloat16 or float16.
        cache_enabled: whether casts of weights are kept until the outermost region ends.
    """

    def __init__(
        self, enabled: bool = True, dtype: _dtype = bfloat16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
