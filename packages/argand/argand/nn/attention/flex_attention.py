"""Attention whose scores a function of the user's changes, or whose keys it chooses."""

from __future__ import annotations

from argand_nn.attention.flex_attention import *  # noqa: F403
from argand_nn.attention.flex_attention import (
    _DEFAULT_SPARSE_BLOCK_SIZE as _DEFAULT_SPARSE_BLOCK_SIZE,
)
from argand_nn.attention.flex_attention import __all__ as __all__
