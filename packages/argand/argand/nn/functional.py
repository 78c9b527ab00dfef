"""Functions of neural networks."""

from __future__ import annotations

from argand_nn import grad as grad
from argand_nn.functional import *  # noqa: F403
from argand_nn.functional import __all__ as __all__
