"""Packed and padded sequences, where PyTorch users look for them."""

from __future__ import annotations

from argand_nn.packed_sequence import *  # noqa: F403
from argand_nn.packed_sequence import __all__ as __all__
