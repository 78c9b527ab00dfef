"""Learning-rate schedulers."""

from __future__ import annotations

from argand_nn.optim.lr_scheduler import *  # noqa: F403
from argand_nn.optim.lr_scheduler import LRScheduler as _LRScheduler  # noqa: F401  (its name before PyTorch 2.0)
from argand_nn.optim.lr_scheduler import __all__ as __all__
