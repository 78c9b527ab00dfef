"""The base class of optimizers, and the hooks of all optimizers."""

from __future__ import annotations

from argand_nn.optim.optimizer import *  # noqa: F403
from argand_nn.optim.optimizer import __all__ as __all__
