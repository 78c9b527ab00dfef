"""Dtypes, promotion and rounding as programs against NumPy expect them: written again here, so that they are independent.

An array stands for a tensor in a carrier dtype: NumPy's own, but float32 for bfloat16, which NumPy lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import argand

CARRIERS: dict[str, type] = {
    "bool": np.bool_,
    "uint8": np.uint8,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "float16": np.float16,
    "bfloat16": np.float32,
    "float32": np.float32,
    "float64": np.float64,
    "complex64": np.complex64,
    "complex128": np.complex128,
}
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")

# Relative, several units in the last place.
TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 4e-6,
    "float64": 1e-11,
    "complex64": 8e-6,
    "complex128": 1e-11,
}


def argand_dtype(name: str) -> Any:
    return getattr(argand, name)


def name_of(dtype: Any) -> str:
    return str(dtype).removeprefix("argand.")


def category(dtype: str) -> int:
    """0 bool, 1 integers, 2 floating, 3 complex."""
    if dtype == "bool":
        return 0
    return 1 if dtype in INTEGERS else 2 if dtype in FLOATS else 3


def promote(a: str, b: str) -> str:
    if a == b:
        return a
    if category(a) > category(b):
        a, b = b, a
    if category(a) < category(b) and not (category(a) == 2 and a == "float64"):
        return b  # but float64 with complex64 keeps its precision
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if "bfloat16" in (a, b):
        return b if a == "bfloat16" else a
    return str(np.promote_types(CARRIERS[a], CARRIERS[b]))


def scalar_dtype(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "int64" if isinstance(value, int) else "float32"


def result_type(dtypes: Sequence[tuple[str, int]], scalars: Sequence[Any] = ()) -> str:
    """Of operands, each a dtype and a number of dimensions: tensors without dimensions, then numbers, count by category only."""
    groups = [
        [d for d, n in dtypes if n],
        [d for d, n in dtypes if not n],
        [scalar_dtype(x) for x in scalars],
    ]
    result = None
    for group in groups:
        if group:
            dtype = group[0]
            for other in group[1:]:
                dtype = promote(dtype, other)
            if result is None:
                result = dtype
            elif category(result) == 2 and category(dtype) == 3:
                result = "complex128" if result == "float64" else "complex64"
            elif category(dtype) > category(result):
                result = promote(result, dtype)
    assert result is not None
    return result


def round_to(array: np.ndarray, dtype: str) -> np.ndarray:
    """The values that `dtype` has for these, in its carrier; 16-bit formats are reached by way of float32, a complex number is true unless both parts are 0."""
    carrier = CARRIERS[dtype]
    with np.errstate(all="ignore"):
        if np.iscomplexobj(array) and 0 < category(dtype) < 3:
            array = array.real
        if dtype not in ("float16", "bfloat16"):
            return np.asarray(array).astype(carrier)
        single = np.asarray(array).astype(np.float32)
        if dtype == "float16":
            return single.astype(np.float16)
        bits = single.view(np.uint32).astype(np.uint64)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32)
        return np.where(np.isnan(single), np.float32(np.nan), rounded.view(np.float32))


def widen(array: np.ndarray) -> np.ndarray:
    """For the reference's arithmetic: floating values in double precision, integers as they are, where they wrap alike."""
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    return array.astype(np.complex128) if array.dtype.kind == "c" else array


def largest(*arrays: np.ndarray) -> float:
    """The largest finite magnitude, at least 1: what rounding errors of a sum are relative to."""
    largest_magnitude = 1.0
    for array in arrays:
        magnitudes = np.abs(widen(np.asarray(array)))
        finite = magnitudes[np.isfinite(magnitudes)]
        if finite.size:
            largest_magnitude = max(largest_magnitude, float(finite.max()))
    return largest_magnitude


def values_of(tensor: Any) -> np.ndarray:
    """A tensor's values in the carrier: through its memory where NumPy knows the dtype."""
    dtype = name_of(tensor.dtype)
    if dtype == "bfloat16":
        array = np.array(tensor.tolist(), dtype=np.float32)
        return array.reshape(tuple(tensor.shape))
    return np.asarray(tensor.numpy())


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def close(actual: np.ndarray, expected: np.ndarray, dtype: str, scale: float) -> bool:
    """Whether `actual`, of `dtype`, is the wide `expected` up to rounding errors relative to `scale`."""
    expected = round_to(expected, dtype)
    if category(dtype) < 2:
        return same(actual, expected)
    if category(dtype) == 3:
        # What becomes of infinite parts is not the same for all who multiply complex numbers.
        finite = np.isfinite(expected)
        actual, expected = actual[finite], expected[finite]
    tolerance = TOLERANCE[dtype]
    with np.errstate(all="ignore"):
        return bool(
            np.allclose(
                widen(actual), widen(expected), tolerance, tolerance * scale, equal_nan=True
            )
        )


def is_tame(array: np.ndarray, dtype: str) -> bool:
    """Whether values are small enough to go on with: sums of larger ones overflow in one order and not in another."""
    if category(dtype) < 2:
        return True
    if category(dtype) == 3 and not np.isfinite(array).all():
        return False
    return largest(array) <= (100 if dtype == "float16" else 3000)
