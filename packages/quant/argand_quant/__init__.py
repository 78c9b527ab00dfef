"""Quantization of exported programs."""

from __future__ import annotations

import argand_c10

argand_c10.check_abi("argand-quant", built_for=2)

from argand_quant import operators  # noqa: E402  (the ABI is checked first)
from argand_quant.convert import ConvertedProgram, convert_pt2e  # noqa: E402
from argand_quant.fake_quantize import (  # noqa: E402
    FakeQuantize,
    fake_quantize_per_channel_affine,
    fake_quantize_per_tensor_affine,
)
from argand_quant.observers import (  # noqa: E402
    FixedQParamsObserver,
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    ObserverBase,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    UniformQuantizationObserverBase,
)
from argand_quant.prepare import PreparedProgram, prepare_pt2e  # noqa: E402
from argand_quant.quantizer import Quantizer  # noqa: E402
from argand_quant.report import LayerReport, Limits, QuantizationReport  # noqa: E402
from argand_quant.specs import (  # noqa: E402
    DerivedQuantizationSpec,
    FixedQParamsQuantizationSpec,
    QScheme,
    QuantizationAnnotation,
    QuantizationConfig,
    QuantizationSpec,
    QuantizationSpecBase,
    SharedQuantizationSpec,
    per_channel_affine,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)
from argand_quant.x86_quantizer import (  # noqa: E402
    CPUQuantizer,
    X86InductorQuantizer,
    get_default_x86_inductor_quantization_config,
)

__version__ = "0.1.0"
__all__ = [
    "CPUQuantizer",
    "ConvertedProgram",
    "DerivedQuantizationSpec",
    "FakeQuantize",
    "FixedQParamsObserver",
    "FixedQParamsQuantizationSpec",
    "HistogramObserver",
    "LayerReport",
    "Limits",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "PreparedProgram",
    "QScheme",
    "QuantizationAnnotation",
    "QuantizationConfig",
    "QuantizationReport",
    "QuantizationSpec",
    "QuantizationSpecBase",
    "Quantizer",
    "SharedQuantizationSpec",
    "UniformQuantizationObserverBase",
    "X86InductorQuantizer",
    "convert_pt2e",
    "get_default_x86_inductor_quantization_config",
    "operators",
    "per_channel_affine",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "prepare_pt2e",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
]
