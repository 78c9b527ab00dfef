"""Calls of modules with other parameters than their own."""

from __future__ import annotations

from argand_nn.utils.stateless import *  # noqa: F403
from argand_nn.utils.stateless import __all__ as __all__
