"""Limiting gradients."""

from __future__ import annotations

from argand_nn.utils.clip_grad import *  # noqa: F403
from argand_nn.utils.clip_grad import __all__ as __all__
