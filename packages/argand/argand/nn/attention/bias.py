"""Causal masks of attention that are not held in memory."""

from __future__ import annotations

from argand_nn.attention.bias import *  # noqa: F403
from argand_nn.attention.bias import __all__ as __all__
