"""`argand.amp` with CUDA as the device type."""

from __future__ import annotations

import sys

from argand.amp import _DeviceGradScaler, custom_bwd, custom_fwd
from argand.amp import autocast as _autocast
from argand.import_paths import publish as _publish
from argand_c10 import dtype as _dtype
from argand_c10 import float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class GradScaler(_DeviceGradScaler):
    """`argand.amp.GradScaler("cuda", ...)`.

    Args:
        init_scale, growth_factor, backoff_factor, growth_interval, enabled: as there.
    """

    _device = "cuda"


def autocast(
    enabled: bool = True, dtype: _dtype = float16, cache_enabled: bool = True
) -> _autocast:
    """`argand.amp.autocast("cuda", ...)`.

    Args:
        enabled: False makes a region without casts.
        dtype: float16 or bfloat16.
        cache_enabled: whether casts of weights are kept until the outermost region ends.
    """
    return _autocast("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


_publish(__name__, dict.fromkeys(("autocast_mode", "grad_scaler"), sys.modules[__name__]))
