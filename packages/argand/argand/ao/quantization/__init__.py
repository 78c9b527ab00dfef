"""As `argand.quantization`."""

from __future__ import annotations

from argand_quant import *  # noqa: F403
from argand_quant import __all__ as __all__
