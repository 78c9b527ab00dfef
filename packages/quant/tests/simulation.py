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
