"""bfloat16 over all its values: conversions by integer arithmetic, gelu against float64, and the end of erf's range."""

from __future__ import annotations

from math import erfc, sqrt
from typing import Any

import numpy as np

import argand_aten as aten
import argand_c10 as c10

BITS = np.arange(65536, dtype=np.uint32)


def rounded(bits: Any) -> Any:
    """float32 patterns to bfloat16's, to nearest even; NaN keeps its payload and is made quiet."""
    nearest = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(is_nan, (bits >> 16) | 0x40, nearest).astype(np.uint16)


def from_bits(bits: Any) -> Any:
    return c10.tensor(bits.astype(np.uint16).view(np.int16)).view(c10.bfloat16)


def to_bits(t: Any) -> Any:
    return t.view(c10.int16).numpy().view(np.uint16)


def test_rounding() -> None:
    for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        bits = (BITS << 16) | np.uint32(low)
        found = to_bits(c10.tensor(bits.view(np.float32)).to(c10.bfloat16))
        np.testing.assert_array_equal(found, rounded(bits))


def test_widening() -> None:
    found = from_bits(BITS).to(c10.float32).view(c10.int32).numpy().view(np.uint32)
    np.testing.assert_array_equal(found, BITS << 16)


def test_gelu_is_within_one_place() -> None:
    values = (BITS << 16).view(np.float32)
    ordinary = np.isfinite(values) & (values >= -4) & (values < 1e38)  # below, 1 + erf cancels
    true = np.array([0.5 * float(v) * erfc(-float(v) / sqrt(2)) for v in values[ordinary]])
    expected = rounded(true.astype(np.float32).view(np.uint32)).astype(np.int64)
    found = to_bits(aten.gelu(from_bits(BITS)))[ordinary].astype(np.int64)
    assert np.abs(found - expected).max() <= 1
    assert (found != expected).sum() <= 8


def test_erf_ends_at_one() -> None:
    first, last = (int(np.float32(v).view(np.uint32)) for v in (3.5, 4.0))
    values = np.arange(first, last, dtype=np.uint32).view(np.float32)
    found = aten.erf(c10.tensor(values)).numpy()
    assert found.max() == 1
    assert found.min() >= 1 - erfc(3.5) - 5e-7
    assert (aten.erf(c10.tensor(-values)).numpy() == -found).all()
    ends = aten.erf(c10.tensor([4.0, np.inf, -np.inf, -0.0, np.nan])).numpy()
    np.testing.assert_array_equal(ends, [1, 1, -1, 0, np.nan])
    assert np.signbit(ends[3])
