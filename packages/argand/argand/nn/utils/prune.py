"""Pruning: parameters times masks of 0 and 1."""

from __future__ import annotations

from argand_nn.utils.prune import *  # noqa: F403
from argand_nn.utils.prune import __all__ as __all__
