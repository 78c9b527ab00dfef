"""Numbers beside 16-bit floats: factors, divisors and weights are not rounded to the dtype; summands, their factors (alpha) and exponents are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10

NUMBERS = [0.1, 1.3456, 1e5, 1e-8, 257, -70000, 2.5, float("inf"), 2.0**-149]

Function = Callable[..., Any]
KEPT: dict[str, tuple[Function, Function]] = {
    "mul": (lambda x, y, s: x * s, lambda x, y, s: x * s),
    "mul by a number first": (lambda x, y, s: s * x, lambda x, y, s: x * s),
    "mul_": (lambda x, y, s: x.clone().mul_(s), lambda x, y, s: x * s),
    "mul of every second": (lambda x, y, s: x[::2] * s, lambda x, y, s: x[::2] * s),
    "mul by a tensor": (lambda x, y, s: x * c10.tensor(s), lambda x, y, s: x * s),
    "div": (lambda x, y, s: x / s, lambda x, y, s: x / s),
    "div of a number": (lambda x, y, s: s / x, lambda x, y, s: s / x),
    "div by a tensor": (lambda x, y, s: x / c10.tensor(s), lambda x, y, s: x / s),
    "trunc": (
        lambda x, y, s: aten.div(x, s, rounding_mode="trunc"),
        lambda x, y, s: np.trunc(x / s),
    ),
    "lerp": (
        lambda x, y, s: aten.lerp(x, y, s),
        lambda x, y, s: x + s * (y - x) if abs(s) < 0.5 else y - (y - x) * (np.float32(1) - s),
    ),
}
ROUNDED: dict[str, Function] = {
    "add": lambda x, s: x + s,
    "sub": lambda x, s: s - x,
    "alpha": lambda x, s: aten.add(
        x, -x * x, alpha=min(s, 6e4)
    ),  # larger ones are refused, as exponents
    "alpha of sub": lambda x, s: aten.sub(c10.tensor([1, 2, 3])[:, None], x, alpha=min(s, 6e4)),
    "pow": lambda x, s: x ** min(s, 6e4),
    "fmod": lambda x, s: aten.fmod(x, s),
    "mul by a tensor first": lambda x, s: aten.mul(c10.tensor(s), x),
}


def values(dtype: Any, n: int = 333) -> tuple[c10.Tensor, Any]:
    x = c10.tensor(np.random.default_rng(n).standard_normal(n).astype(np.float32) * 3).to(dtype)
    return x, x.to(c10.float32).numpy()


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("dtype", [c10.float16, c10.bfloat16])
def test_kept(dtype: Any, name: str) -> None:
    ours, numpys = KEPT[name]
    (x, wide_x), (y, wide_y) = values(dtype), values(dtype)
    for number in NUMBERS:
        if name.endswith("a tensor") and isinstance(number, float):
            number = float(np.float32(number))
        with np.errstate(all="ignore"):
            want = c10.tensor(numpys(wide_x, wide_y, np.float32(number))).to(dtype)
        got = ours(x, y, number)
        assert got.dtype == dtype
        np.testing.assert_array_equal(
            got.to(c10.float32).numpy(), want.to(c10.float32).numpy(), f"{number}"
        )


@pytest.mark.parametrize("name", ROUNDED)
@pytest.mark.parametrize("dtype", [c10.float16, c10.bfloat16])
def test_rounded(dtype: Any, name: str) -> None:
    x, _ = values(dtype)
    for number in NUMBERS[:5]:
        got = ROUNDED[name](x.abs(), number)
        want = ROUNDED[name](x.abs(), c10.tensor(number).to(dtype).item())
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.to(c10.float32).numpy(), want.to(c10.float32).numpy())


def test_results_are_rounded_before_they_are_converted() -> None:
    x, _ = values(c10.bfloat16)
    for dtype in (c10.float32, c10.float64):
        out = aten.empty([3], dtype=dtype)
        out.resize_(0)
        aten.mul(x, 0.1, out=out)
        np.testing.assert_array_equal(out.numpy(), (x * 0.1).to(dtype).numpy())


@pytest.mark.parametrize("dtype", [c10.float16, c10.bfloat16])
def test_quotients_are_rounded_before_they_are_truncated(dtype: Any) -> None:
    x, wide = values(dtype)
    for dividend in (c10.tensor(True), c10.tensor([7]), x[:1]):
        got = aten.div(dividend, x, rounding_mode="trunc")
        want = c10.tensor(np.float32(dividend.item()) / wide).to(dtype).trunc()
        assert got.dtype == dtype
        np.testing.assert_array_equal(got.to(c10.float32).numpy(), want.to(c10.float32).numpy())
