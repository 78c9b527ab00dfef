"""Datasets, samplers and the `DataLoader`."""

from __future__ import annotations

from argand_nn.data import *  # noqa: F403
from argand_nn.data import __all__ as __all__
