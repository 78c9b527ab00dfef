"""Parameters that are computed from others: their values are functions of what is learned."""

from __future__ import annotations

from argand_nn.utils.parametrize import *  # noqa: F403
from argand_nn.utils.parametrize import __all__ as __all__
