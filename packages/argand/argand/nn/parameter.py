"""Parameters and buffers."""

from __future__ import annotations

from argand_nn.parameter import *  # noqa: F403
from argand_nn.parameter import UninitializedTensorMixin as UninitializedTensorMixin
from argand_nn.parameter import __all__ as __all__
