"""The quantizer for CPUs."""

from __future__ import annotations

from argand_quant import (
    QuantizationConfig,
    X86InductorQuantizer,
    get_default_x86_inductor_quantization_config,
)

__all__ = [
    "QuantizationConfig",
    "X86InductorQuantizer",
    "get_default_x86_inductor_quantization_config",
]
