"""The choice among implementations of scaled dot-product attention."""

from __future__ import annotations

from argand_nn.attention import *  # noqa: F403
from argand_nn.attention import __all__ as __all__

# isort: split
from argand.nn.attention import bias as bias
from argand.nn.attention import flex_attention as flex_attention
