"""softmax's kernels in Triton's interpreter against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from interpreter import run

from argand_aten_cuda.kernels import softmax as kernels

RNG = np.random.default_rng(1)


def reference(x: np.ndarray, log: bool) -> np.ndarray:
    with np.errstate(all="ignore"):
        shifted = x.astype("float64") - np.fmax.reduce(x, 1, keepdims=True)
        total = np.exp(shifted).sum(1, keepdims=True)
        return shifted - np.log(total) if log else np.exp(shifted) / total


def gradient(grad: np.ndarray, y: np.ndarray, log: bool) -> np.ndarray:
    if log:
        return grad - np.exp(y) * grad.sum(1, keepdims=True)
    return y * (grad - (grad * y).sum(1, keepdims=True))


def run_variant(name: str, variant: str, x: np.ndarray, *others: np.ndarray, log: bool) -> None:
    """`softmax_<name>` over dimension 1 of (outer, n, ...)."""
    constants = {"LOG": int(log), "ALIGN": 1}
    outer, n = x.shape[:2]
    if variant == "fits":
        grid, constants = (-(-outer // 2),), {**constants, "BLOCK": 64, "ROWS": 2}
        run(getattr(kernels, f"softmax_{name}"), grid, x, *others, outer, n, **constants)
    elif variant == "long":
        run(
            getattr(kernels, f"softmax_{name}_long"), (outer,), x, *others, n, BLOCK=16, **constants
        )
    else:
        inner = x[0, 0].size
        constants = {**constants, "BLOCK_N": 8, "BLOCK_I": 8}
        grid = (outer * -(-inner // 8),)
        run(getattr(kernels, f"softmax_{name}_columns"), grid, x, *others, n, inner, **constants)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("variant", ["fits", "long", "columns"])
def test_softmax_and_gradient(variant: str, dtype: str, log: bool) -> None:
    shape = (2, 19, 11) if variant == "columns" else (7, 37)
    x = (RNG.standard_normal(shape) * 3).astype(dtype)
    x[0, 3] = -np.inf
    x[1, :, ...] = -np.inf
    if variant != "columns":
        x[2, 5] = np.nan
    expected = reference(x, log)
    y = np.zeros_like(x)
    run_variant("forward", variant, x, y, log=log)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    grad = RNG.standard_normal(shape).astype(dtype)
    dx = np.zeros_like(x)
    run_variant("backward", variant, grad, y, dx, log=log)
    np.testing.assert_allclose(dx, gradient(grad, expected, log), rtol=1e-4, atol=1e-5)
