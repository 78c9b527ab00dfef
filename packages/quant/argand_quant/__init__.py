"""Quantization of exported programs."""

from __future__ import annotations

import argand_c10

argand_c10.check_abi("argand-quant", built_for=2)

from argand_quant import operators  # noqa: E402  (the ABI is checked first)

__version__ = "0.1.0"
__all__ = ["operators"]
