"""Gradient clipping and parameter vectors."""

from __future__ import annotations

from argand_nn.utils import *  # noqa: F403
from argand_nn.utils import __all__ as __all__
