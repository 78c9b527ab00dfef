"""fake_quantize_per_tensor_affine and fake_quantize_per_channel_affine as functions of the front-end."""

from __future__ import annotations

import numpy as np
import pytest

import argand_aten as aten
from argand_autograd import grad
from argand_c10 import float32, float64, int32, int64
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


@pytest.mark.parametrize("dtype", [float32, float64])
def test_real_zero_points_are_added_before_rounding(dtype):
    values = np.linspace(-9, 9, 48).reshape(3, 4, 4) + 0.01
    scales, zero_points = np.float32([0.5, -1, 0.3]), np.float32([0.3, 99.7, -2.5])
    x = aten.tensor(values, dtype=dtype).requires_grad_()
    y = fake_quantize_per_channel_affine(
        x, aten.tensor(scales), aten.tensor(zero_points), 0, -4, 60
    )
    (dx,) = grad(y, x, aten.full_like(y, 2.0))
    real = np.float32 if dtype is float32 else np.float64
    s, z = scales[:, None, None], zero_points[:, None, None]
    q = values.astype(real) * (1 / s) + z
    result = (np.rint(np.clip(q, -4, 60)).astype(np.float64) - z) * s.astype(np.float64)
    np.testing.assert_array_equal(y.detach().numpy(), result.astype(real))
    np.testing.assert_array_equal(dx.numpy(), 2.0 * ((np.rint(q) >= -4) & (np.rint(q) <= 60)))


def test_float64_is_rounded_in_float64():
    x = aten.tensor([0.25 - 1e-12, 0.25 + 1e-12], dtype=float64)
    assert fake_quantize_per_tensor_affine(x, 0.5, 0, 0, 15).tolist() == [0, 0.5]


@pytest.mark.parametrize("dims", [(0, 2, 3, 1), (3, 1, 0, 2)])
def test_results_lie_as_inputs(dims):
    x = aten.linspace(-9, 9, 120).reshape(2, 3, 4, 5)
    scales, zero_points = aten.tensor([0.5, 0.7, 1.1]), aten.tensor([0, 1, 2], dtype=int32)
    y, axis = x.permute(*dims).requires_grad_(), dims.index(1)
    for found, expected in (
        (
            fake_quantize_per_tensor_affine(y, 0.5, 1, -8, 7),
            fake_quantize_per_tensor_affine(x, 0.5, 1, -8, 7),
        ),
        (
            fake_quantize_per_channel_affine(y, scales, zero_points, axis, -8, 7),
            fake_quantize_per_channel_affine(x, scales, zero_points, 1, -8, 7),
        ),
    ):
        (dy,) = grad(found.square().sum(), y)
        assert found.stride() == dy.stride() == y.stride()
        np.testing.assert_array_equal(
            found.detach().numpy(), expected.detach().permute(*dims).numpy()
        )
    gap = x[:, :, ::2]
    assert fake_quantize_per_tensor_affine(gap, 0.5, 1, -8, 7).stride() == (30, 10, 5, 1)


def test_zero_points_in_tensors_may_lie_outside():
    x = aten.tensor([-9.0, 0.26, 9.0])
    y = fake_quantize_per_tensor_affine(x, aten.tensor(0.5), aten.tensor(300), 0, 255)
    assert y.tolist() == [-22.5] * 3
    assert fake_quantize_per_tensor_affine(x, aten.tensor(0.5), 3, 0, 15).tolist() == [-1.5, 0.5, 6]


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
        lambda: fake_quantize_per_channel_affine(x, scales.double(), scales, 0, 0, 7),
        lambda: fake_quantize_per_channel_affine(x, scales[:, None], scales[:, None], 0, 0, 7),
        lambda: fake_quantize_per_channel_affine(x, scales, scales, -1, 0, 7),
        lambda: fake_quantize_per_tensor_affine(x, scales, scales, 0, 7),
        lambda: fake_quantize_per_tensor_affine(x.int(), 0.1, 0, 0, 7),
        lambda: fake_quantize_per_channel_affine(x.int(), scales, scales, 0, 0, 7),
    ):
        with pytest.raises(RuntimeError, match="fake_quantize"):
            call()
    with pytest.raises(NotImplementedError, match="not implemented for int32"):
        fake_quantize_per_tensor_affine(x.int(), 0.1, 0, 0, 7)
    with pytest.raises(IndexError, match="axis 2"):
        fake_quantize_per_channel_affine(x, scales, scales, 2, 0, 7)
