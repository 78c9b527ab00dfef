"""Optimizers and learning-rate schedulers."""

from __future__ import annotations

from argand.optim import lr_scheduler, swa_utils
from argand_nn.optim import *  # noqa: F403
from argand_nn.optim import __all__ as __all__
