"""Packed and padded sequences."""

from __future__ import annotations

from argand_nn.utils.rnn import *  # noqa: F403
from argand_nn.utils.rnn import __all__ as __all__
