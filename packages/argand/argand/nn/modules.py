"""The modules."""

from __future__ import annotations

from argand_nn.modules import *  # noqa: F403
from argand_nn.modules import __all__ as __all__
