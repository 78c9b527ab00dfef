"""Parametrizations: orthogonal matrices, weights as direction and size, spectral norm 1."""

from __future__ import annotations

from argand_nn.utils.parametrizations import *  # noqa: F403
from argand_nn.utils.parametrizations import __all__ as __all__
