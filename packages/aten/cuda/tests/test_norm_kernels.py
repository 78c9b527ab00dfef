"""The kernels of layer, RMS, group and batch normalisation in Triton's interpreter against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from interpreter import run

from argand_aten_cuda.kernels import _accumulate, batch_norm, group_norm, norm

RNG = np.random.default_rng(2)
EPS = 1e-3


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def close(got: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=2e-5)


def normalised(
    x: np.ndarray, axis: tuple[int, ...], rms: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean, the reciprocal standard deviation and the normalised values, in float64."""
    x = x.astype("float64")
    mean = 0 * x.mean(axis, keepdims=True) if rms else x.mean(axis, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(axis, keepdims=True) + EPS)
    return mean, rstd, (x - mean) * rstd


def gradient(g, h, rstd, axis: tuple[int, ...], rms: bool = False) -> np.ndarray:
    """The input's gradient; `g` is the gradient times the weight, `h` the normalised values."""
    center = 0 if rms else g.mean(axis, keepdims=True)
    return rstd * (g - center - h * (g * h).mean(axis, keepdims=True))


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("rms", [False, True])
def test_layer_and_rms_norm(rms: bool, weights: bool) -> None:
    rows, n = 9, 37
    x, grad, w, b = random(rows, n) + 2, random(rows, n), random(n), random(n)
    m0, r0, h = normalised(x, (1,), rms)
    y0 = h * (w if weights else 1) + (b if weights and not rms else 0)
    flags = {"RMS": int(rms), "HAS_W": int(weights)}
    bias = {"HAS_B": int(weights and not rms)}
    mean, rstd = np.zeros(rows, "float32"), np.zeros(rows, "float32")
    for long in (False, True):
        y = np.zeros_like(x)
        if long:
            run(
                norm.norm_forward_long, (rows,), x, w, b, y, mean, rstd, n, EPS, BLOCK=16, ALIGN=1, **flags, **bias
            )  # fmt: skip
        else:
            run(
                norm.norm_forward, (5,), x, w, b, y, mean, rstd, rows, n, EPS, BLOCK=64, ROWS=2, ALIGN=1, **flags, **bias
            )  # fmt: skip
        close(y, y0)
        close(rstd, r0[:, 0])
        close(mean, m0[:, 0])
    expected = gradient(grad * (w if weights else 1), h, r0, (1,), rms)
    dx, partial = np.zeros_like(x), np.full((2, 3, n), np.nan, "float32")
    run(
        norm.norm_backward, (3,), grad, x, w, mean, rstd, dx, partial, rows, n, PARTIAL=1, BLOCK=64, ROWS=2, ALIGN=1, **flags
    )  # fmt: skip
    close(dx, expected)
    dw, db = np.zeros(n, "float32"), np.zeros(n, "float32")
    run(
        _accumulate.sum_partials, (3, 1 if rms else 2), partial, dw, db, 3, n, BOTH=int(not rms), BLOCK_P=2, BLOCK_N=16
    )  # fmt: skip
    close(dw, (grad * h).sum(0))
    close(db, 0 * db if rms else grad.sum(0))
    dx = np.zeros_like(x)
    run(norm.norm_backward_long, (rows,), grad, x, w, mean, rstd, dx, n, BLOCK=16, ALIGN=1, **flags)
    close(dx, expected)
    partial = np.full((2, 3, n), np.nan, "float32")
    run(
        norm.norm_backward_weight, (3, 3), grad, x, mean, rstd, partial, rows, n, 3, RMS=int(rms), BLOCK_R=2, BLOCK=16, ALIGN=1
    )  # fmt: skip
    close(partial[0].sum(0), (grad * h).sum(0))
    if not rms:
        close(partial[1].sum(0), grad.sum(0))


@pytest.mark.parametrize("weights", [True, False])
def test_group_norm(weights: bool) -> None:
    n, c, s, groups = 2, 6, 5, 3
    x, grad, w, b = random(n, c, s) + 1, random(n, c, s), random(c), random(c)
    m0, r0, h = normalised(x.reshape(n * groups, -1), (1,))
    h3 = h.reshape(n, c, s)
    flags = {"HAS_W": int(weights), "ALIGN": 1}
    y, mean, rstd = np.zeros_like(x), np.zeros(n * groups, "float32"), np.zeros(n * groups, "float32")  # fmt: skip
    run(
        group_norm.group_norm_forward, (n * groups,), x, w, b, y, mean, rstd, groups, c // groups, s, EPS,
        HAS_B=int(weights), BLOCK=4, **flags,
    )  # fmt: skip
    close(y, h3 * w[:, None] + b[:, None] if weights else h3)
    close(mean, m0[:, 0])
    close(rstd, r0[:, 0])
    partial, dx = np.zeros((2, n, c), "float32"), np.zeros_like(x)
    run(
        group_norm.group_norm_sums, (n * c,), grad, x, mean, rstd, partial, groups, c, s, BLOCK=4, ALIGN=1
    )  # fmt: skip
    close(partial[0], (grad * h3).sum(2))
    close(partial[1], grad.sum(2))
    run(
        group_norm.group_norm_backward, (n * groups,), grad, x, w, mean, rstd, partial, dx, groups, c // groups, s,
        BLOCK_C=4, BLOCK=4, **flags,
    )  # fmt: skip
    g = (grad * w[:, None] if weights else grad).reshape(n * groups, -1)
    close(dx.reshape(n * groups, -1), gradient(g, h, r0, (1,)))


@pytest.mark.parametrize("shape", [(3, 5, 7, 4, 1, 6), (9, 5, 1, 4, 4, 3), (2, 3, 4, 4, 2, 8)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(shape: tuple[int, ...], training: bool) -> None:
    n, c, s, rows, columns, each = shape
    count, splits = n * s, -(-n * s // each)
    x, grad, w, b = random(n, c, s) * 2 + 3, random(n, c, s), random(c), random(c)
    m0, r0, _ = normalised(x, (0, 2))
    variance = x.astype("float64").var((0, 2))
    sums = (-(-c // columns), splits)
    partial = np.full((2, splits, c), np.nan, "float32")
    run(
        batch_norm.batch_norm_sums, sums, x, partial, count, c, s, each, BLOCK_E=rows, BLOCK_C=columns
    )  # fmt: skip
    mean, rstd, running_mean, running_var = (np.zeros(c, "float32") for _ in range(4))
    run(
        batch_norm.batch_norm_statistics, (-(-c // 2),), partial, mean, rstd, running_mean, running_var,
        splits, count, c, each, 0.1, EPS, RUNNING=3, BLOCK_S=2, BLOCK_C=2,
    )  # fmt: skip
    close(mean, m0[0, :, 0])
    close(rstd, r0[0, :, 0])
    close(running_mean, 0.1 * m0[0, :, 0])
    close(running_var, 0.1 * variance * count / (count - 1))
    spread = rstd if training else (1 + random(c) ** 2).astype("float32")
    r = (rstd if training else 1 / np.sqrt(spread + EPS))[:, None].astype("float64")
    h = (x.astype("float64") - mean[:, None]) * r
    y = np.zeros_like(x)
    blocks, constants = (-(-x.size // 16),), {"TRAINING": int(training), "BLOCK": 16, "HAS_W": 1}
    run(
        batch_norm.batch_norm_apply, blocks, x, mean, spread, w, b, y, x.size, c, s, EPS, HAS_B=1, **constants
    )  # fmt: skip
    close(y, h * w[:, None] + b[:, None])
    partial = np.full((2, splits, c), np.nan, "float32")
    run(
        batch_norm.batch_norm_backward_sums, sums, grad, x, mean, partial, count, c, s, each, BLOCK_E=rows, BLOCK_C=columns
    )  # fmt: skip
    dw, db, totals = np.zeros(c, "float32"), np.zeros(c, "float32"), np.zeros((2, c), "float32")
    run(
        batch_norm.batch_norm_backward_statistics, (-(-c // 2),), partial, spread, dw, db, totals, splits, c, EPS,
        TRAINING=int(training), BLOCK_S=2, BLOCK_C=2,
    )  # fmt: skip
    close(dw, (grad * h).sum((0, 2)))
    close(db, grad.sum((0, 2)))
    dx = np.zeros_like(x)
    run(
        batch_norm.batch_norm_backward, blocks, grad, x, mean, spread, w, totals, dx, x.size, c, s, count, EPS, **constants
    )  # fmt: skip
    g = grad * w[:, None]
    close(dx, gradient(g, h, r, (0, 2)) if training else g * r)
