"""Makers of test tensors."""

from __future__ import annotations

import math
from typing import Any

import argand_c10
from argand_c10 import Tensor

float64 = argand_c10.float64


def leaf(data: Any, dtype: Any = float64) -> Tensor:
    """A tensor that requires grad."""
    return argand_c10.tensor(data, dtype=dtype, requires_grad=True)


def values(*shape: int, start: float = 0.3) -> Any:
    """Nested lists of different, harmless numbers."""

    def fill(dims: tuple[int, ...], at: list[int]) -> Any:
        if not dims:
            at[0] += 1
            return start + math.sin(at[0]) + 0.05 * at[0]
        return [fill(dims[1:], at) for _ in range(dims[0])]

    return fill(shape, [0])


def random_leaf(*shape: int, start: float = 0.3) -> Tensor:
    return leaf(values(*shape, start=start))


def close(t: Tensor, expected: Any, tolerance: float = 1e-9) -> bool:
    def compare(a: Any, b: Any) -> bool:
        if isinstance(a, list):
            return len(a) == len(b) and all(compare(x, y) for x, y in zip(a, b, strict=True))
        return abs(a - b) <= tolerance * max(1.0, abs(b))

    return t is not None and compare(t.tolist(), expected)
