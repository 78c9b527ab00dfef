"""fake_quantize_per_tensor_affine and fake_quantize_per_channel_affine as functions of the front-end."""

from __future__ import annotations

import numpy as np
import pytest

import argand_aten as aten
from argand_c10 import float64, int32, int64
from argand_quant import fake_quantize_per_channel_affine, fake_quantize_per_tensor_affine


def expected(x, scale, zero_point, low, high):
    q = np.rint(x / scale) + zero_point
    return (np.clip(q, low, high) - zero_point) * scale, (q >= low) & (q <= high)


def test_values_and_gradients():
    values = np.linspace(-9, 9, 48, dtype=np.float32).reshape(3, 4, 4) + np.float32(0.01)
    for scale, zero_point in ((0.5, 3), (aten.tensor([0.5]), aten.tensor([3], dtype=int32))):
        x = aten.tensor(values).requires_grad_()
        y = fake_quantize_per_tensor_affine(x, scale, zero_point, -8, 7)
        y.sum().backward()
        result, kept = expected(values, 0.5, 3, -8, 7)
        np.testing.assert_array_equal(y.detach().numpy(), result)
        np.testing.assert_array_equal(x.grad.numpy(), kept)
    x = aten.tensor(values).requires_grad_()
    scales, zero_points = np.float32([0.5, 1, 2, 4]), np.int32([0, 1, -2, 3])
    y = fake_quantize_per_channel_affine(x, aten.tensor(scales), aten.tensor(zero_points), 1, -4, 3)
    y.sum().backward()
    result, kept = expected(values, scales[:, None], zero_points[:, None], -4, 3)
    np.testing.assert_array_equal(y.detach().numpy(), result)
    np.testing.assert_array_equal(x.grad.numpy(), kept)
    assert (
        fake_quantize_per_tensor_affine(aten.ones(2, dtype=float64), 0.1, 0, 0, 15).dtype is float64
    )


def test_refusals():
    x, scales = aten.ones(2, 2), aten.ones(2)
    for call in (
        lambda: fake_quantize_per_tensor_affine(x, 0.1, 300, 0, 255),
        lambda: fake_quantize_per_tensor_affine(x, 0.1, 0, 5, 2),
        lambda: fake_quantize_per_channel_affine(
            x, scales, aten.tensor([0, 9], dtype=int32), 0, 0, 7
        ),
        lambda: fake_quantize_per_channel_affine(
            x, scales, aten.tensor([0, 1], dtype=int64), 0, 0, 7
        ),
        lambda: fake_quantize_per_channel_affine(x, scales, aten.tensor([0], dtype=int32), 0, 0, 7),
        lambda: fake_quantize_per_channel_affine(x, scales, scales, 0, 0, 7),
        lambda: fake_quantize_per_tensor_affine(x.int(), 0.1, 0, 0, 7),
    ):
        with pytest.raises(RuntimeError, match="fake_quantize"):
            call()
