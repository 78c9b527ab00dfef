"""Quantization of exported programs: quantizers, observers, `prepare_pt2e`, `convert_pt2e`."""

from __future__ import annotations

from argand_quant import *  # noqa: F403
from argand_quant import __all__ as __all__
