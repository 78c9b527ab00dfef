"""Averages of models over training."""

from __future__ import annotations

from argand_nn.optim.swa_utils import *  # noqa: F403
from argand_nn.optim.swa_utils import __all__ as __all__
