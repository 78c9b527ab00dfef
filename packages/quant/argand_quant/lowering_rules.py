"""Quantize and dequantize as loops, which code generators fuse with their neighbours; the arithmetic is that of registry/quantize.yaml."""

from __future__ import annotations

from typing import Any

import argand_c10 as c10
from argand_c10.lowerings import PointwiseLowering

__all__ = ["LOWERINGS"]

_ARGUMENTS = ("input", "scale", "zero_point", "quant_min", "quant_max", "dtype")


def _quantize(dtype: str) -> Any:
    def element(v: Any, x: Any, scale: Any, zero_point: Any, low: Any, high: Any) -> Any:
        inverse = v.number(1.0 / scale.detail)  # rounded once
        q = v.call("add", v.call("round", v.call("mul", x, inverse)), zero_point)
        q = v.call("where", v.call("gt", q, low), q, low)  # NaN becomes the lower end
        q = v.call("where", v.call("lt", q, high), q, high)
        return v.cast(v.cast(q, "int32"), dtype)  # vectors convert in these steps

    return element


def _dequantize(v: Any, q: Any, scale: Any, zero_point: Any) -> Any:
    return v.call("mul", v.call("sub", q, zero_point), scale)


def _float32(*operands: Any) -> c10.dtype:
    return c10.float32


_QUANTIZED = (
    c10.uint8,
    c10.int8,
    c10.int16,
)  # int32 takes wider arithmetic than float32: the operator itself is called
LOWERINGS = {
    "quantized_decomposed::quantize_per_tensor": PointwiseLowering(
        arguments=_ARGUMENTS,
        operands=("input",),
        scalars=("scale", "zero_point", "quant_min", "quant_max"),
        functions={dtype: _quantize(dtype.name) for dtype in _QUANTIZED},
        dtypes=frozenset({"float32"}),
        computation=_float32,
        variant="dtype",
        result="named",
        costs=dict.fromkeys(_QUANTIZED, 7),
    ),
    "quantized_decomposed::dequantize_per_tensor": PointwiseLowering(
        arguments=(*_ARGUMENTS, "out_dtype"),
        operands=("input",),
        scalars=("scale", "zero_point"),
        functions={None: _dequantize},
        dtypes=frozenset({"float32"}),
        computation=_float32,
        result="named",
        costs={None: 3},
    ),
}
