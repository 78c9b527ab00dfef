"""Gradients of convolutions for their inputs and weights, each by itself."""

from __future__ import annotations

from argand_nn.grad import *  # noqa: F403
from argand_nn.grad import __all__ as __all__
