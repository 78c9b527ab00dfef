"""NumPy's view of the operators: integers in int64, real numbers in float32, one rounding an operation."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def spread(values: Any, ndim: int, axis: int) -> Array:
    """Parameters of channels, shaped to broadcast along `axis`."""
    array = np.asarray(values)
    if array.ndim == 0 or ndim == 0:
        return array.reshape(())
    shape = [1] * ndim
    shape[axis] = array.size
    return array.reshape(shape)


def quantize(x: Array, scale: Any, zero_point: Any, low: int, high: int, axis: int = 0) -> Array:
    """int64 in low..high."""
    inverse = (1.0 / spread(np.asarray(scale, np.float64), x.ndim, axis)).astype(np.float32)
    rounded = np.rint(x.astype(np.float32) * inverse)
    whole = np.where(np.isnan(rounded), -np.inf, rounded).astype(np.float64)
    shifted = whole + spread(zero_point, x.ndim, axis)
    return np.clip(shifted, low, high).astype(np.int64)


def dequantize(q: Array, scale: Any, zero_point: Any, axis: int = 0) -> Array:
    """float32."""
    zero = spread(zero_point, q.ndim, axis).astype(np.float32)
    factor = spread(np.asarray(scale, np.float64), q.ndim, axis).astype(np.float32)
    return (q.astype(np.float32) - zero) * factor


def choose_affine(x: Array, low: int, high: int, eps: float) -> tuple[np.float32, int]:
    """Scale and zero point of choose_qparams."""
    least = np.float32(min(x.min(initial=0), 0))
    most = np.float32(max(x.max(initial=0), 0))
    scale = max((most - least) / np.float32(high - low), np.float32(eps))
    zero = np.clip(np.float32(low) - np.rint(least / scale), low, high)
    return np.float32(scale), int(zero)


def product(sums: Array, factor: Array, bias: Array | None) -> Array:
    """float32 of int64 sums [..., columns]."""
    y = sums.astype(np.float32) * factor.astype(np.float32)
    return y + (np.float32(0) if bias is None else bias)


def finish(
    y: Array, dtype: str, scale: float = 1.0, zero_point: int = 0, relu: bool = False
) -> Array:
    """The last steps of a product: relu, then integers of `dtype`, or float32 as it is."""
    if relu:
        y = np.maximum(y, np.float32(0))
    if dtype == "float32":
        return y
    low = 0 if dtype == "uint8" else -128
    return quantize(y, scale, zero_point, low, low + 255)


def linear_sums(x: Array, zero_point: int, weight: Array) -> Array:
    """int64 [..., columns]."""
    return (x.astype(np.int64) - zero_point) @ weight.astype(np.int64).T


def conv_sums(
    x: Array, zero_point: int, weight: Array, stride: Any, padding: Any, dilation: Any, groups: int
) -> Array:
    """int64 [batch, columns, height, width]; padding adds nothing."""
    centred = x.astype(np.int64) - zero_point
    (top, left), (down, right) = padding, stride
    centred = np.pad(centred, ((0, 0), (0, 0), (top, top), (left, left)))
    columns, per_group, kh, kw = weight.shape
    height = (centred.shape[2] - dilation[0] * (kh - 1) - 1) // down + 1
    width = (centred.shape[3] - dilation[1] * (kw - 1) - 1) // right + 1
    result = np.zeros((x.shape[0], columns, height, width), np.int64)
    each = columns // groups
    for g in range(groups):
        part = centred[:, g * per_group : (g + 1) * per_group]
        kernel = weight[g * each : (g + 1) * each].astype(np.int64)
        for i in range(kh):
            for j in range(kw):
                rows = part[:, :, i * dilation[0] :: down, j * dilation[1] :: right]
                window = rows[:, :, :height, :width]
                result[:, g * each : (g + 1) * each] += np.einsum(
                    "nchw,oc->nohw", window, kernel[:, :, i, j]
                )
    return result
