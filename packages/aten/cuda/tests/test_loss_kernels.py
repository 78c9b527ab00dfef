"""The kernels of the negative log likelihood and of the embedding's gradient in Triton's interpreter against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from interpreter import run

from argand_aten_cuda.kernels import embedding, loss

RNG = np.random.default_rng(3)
IGNORED = -100


def random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_nll_loss(reduction: int, weighted: bool) -> None:
    rows, classes = 11, 7
    x, y, w = random(rows, classes), RNG.integers(0, classes, rows), np.abs(random(classes))
    y[3] = IGNORED
    weights = np.where(y == IGNORED, 0, w[y % classes] if weighted else 1.0)
    losses = -x[np.arange(rows), y % classes] * weights
    out, total = np.zeros(rows if reduction == 0 else 1, "float32"), np.zeros(1, "float32")
    partial, error = np.zeros((2, 2)), np.zeros(4, "int64")
    flags = {"REDUCTION": reduction, "HAS_W": int(weighted)}
    run(
        loss.nll_loss_rows, (2,), x, y, w, out, partial, error, 77, classes << 6 | 1, rows, classes, classes, IGNORED, BLOCK=8, **flags
    )  # fmt: skip
    run(loss.nll_loss_total, (1,), partial, out, total, 2, REDUCTION=reduction, BLOCK=16)
    scale = weights.sum() if reduction == 1 else 1
    np.testing.assert_allclose(total, weights.sum(), rtol=1e-6)
    np.testing.assert_allclose(out, losses if reduction == 0 else losses.sum() / scale, rtol=1e-5)
    assert not error.any()
    grad, dx = random(rows if reduction == 0 else 1), np.full_like(x, np.nan)
    run(
        loss.nll_loss_backward, (2 * rows,), grad, y, w, total, dx, classes, IGNORED, BLOCK=4, ALIGN=1, **flags
    )  # fmt: skip
    expected = np.zeros((rows, classes))
    expected[np.arange(rows), y % classes] = -weights * grad / scale
    np.testing.assert_allclose(dx, expected, rtol=1e-5)


def test_a_target_that_is_no_class_is_reported() -> None:
    x, y = random(3, 7), np.array([1, 9, 2])
    out, partial, error = np.zeros(3, "float32"), np.zeros((1, 2)), np.zeros(4, "int64")
    run(
        loss.nll_loss_rows, (1,), x, y, x, out, partial, error, 77, 7 << 6 | 1, 3, 7, 7, IGNORED, REDUCTION=0, HAS_W=0, BLOCK=8
    )  # fmt: skip
    assert error.tolist() == [77, 9, 7 << 6 | 1, 0]
    np.testing.assert_array_equal(out, [-x[0, 1], 0, -x[2, 2]])


@pytest.mark.parametrize("by_count", [False, True])
def test_embedding_backward(by_count: bool) -> None:
    count, n, rows, padding = 13, 9, 6, 2
    index, grad = RNG.integers(0, rows, count), random(count, n)
    expected = np.zeros((rows, n))
    np.add.at(expected, index, grad)
    if by_count:
        expected /= np.maximum(np.bincount(index, minlength=rows), 1)[:, None]
    expected[padding] = 0
    order, error = np.argsort(index, kind="stable"), np.zeros(4, "int64")
    out = np.zeros((rows, n), "float32")
    run(
        embedding.embedding_backward_runs, (count, 3), grad, index[order], order, out, error, 5, count, n, rows, padding,
        BY_COUNT=int(by_count), BLOCK=4,
    )  # fmt: skip
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    assert not error.any()
