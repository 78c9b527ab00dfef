"""Numbers, the index of a new dimension, and the dtypes."""

from __future__ import annotations

from argand import (
    bool,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from argand.constants import e, inf, nan, newaxis, pi

__all__ = [
    "bool", "complex128", "complex64", "e", "float32", "float64", "inf", "int16", "int32", "int64", "int8", "nan", "newaxis", "pi", "uint16",
    "uint32", "uint64", "uint8",
]  # fmt: skip
