"""Quantize, dequantize, fake quantize and choose_qparams against NumPy, in every tier that the processor has."""

from __future__ import annotations

import numpy as np
import pytest
import simulation
from tiers import lower_tiers, run_again

import argand_aten as aten
import argand_c10 as c10
from argand_autograd import grad
from argand_quant import operators as ops

KINDS = [
    (c10.uint8, 0, 255),
    (c10.uint8, 0, 127),
    (c10.int8, -128, 127),
    (c10.int8, -127, 127),
    (c10.int16, -32768, 32767),
    (c10.int32, -(2**31), 2**31 - 1),
]
EDGES = np.array(
    [
        0.0,
        -0.0,
        0.05,
        0.15,
        -0.05,
        0.25,
        1e-30,
        1e30,
        -1e30,
        np.inf,
        -np.inf,
        np.nan,
        12.75,
        -12.85,
    ],
    np.float32,
)


def values(n: int) -> np.ndarray:
    x = np.random.default_rng(n).normal(0, 20, n).astype(np.float32)
    x[: len(EDGES)] = EDGES[:n]
    return x


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("n", [0, 1, 15, 16, 77, 1000])
@pytest.mark.parametrize(("scale", "zero"), [(0.1, 0), (0.037, 12), (3e-7, -5), (8.0, 127)])
def test_per_tensor_equals_numpy(kind, n, scale, zero) -> None:
    dtype, low, high = kind
    x = values(n)
    q = ops.quantize_per_tensor(aten.from_numpy(x), scale, zero, low, high, dtype)
    assert q.dtype == dtype
    expected = simulation.quantize(x, scale, zero, low, high)
    np.testing.assert_array_equal(q.numpy(), expected)
    same = ops.quantize_per_tensor_tensor(
        aten.from_numpy(x),
        aten.tensor(scale, dtype=c10.float64),
        aten.tensor([zero]),
        low,
        high,
        dtype,
    )
    np.testing.assert_array_equal(same.numpy(), expected)
    back = ops.dequantize_per_tensor(q, scale, zero, low, high, dtype)
    np.testing.assert_array_equal(back.numpy(), simulation.dequantize(expected, scale, zero))


@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 70), 0), ((70, 5), 1), ((3, 4, 5, 6), 1), ((6, 7, 2), -2), ((9,), 0)]
)
@pytest.mark.parametrize("dtype_range", KINDS[:3], ids=str)
def test_per_channel_equals_numpy(shape, axis, dtype_range) -> None:
    dtype, low, high = dtype_range
    random = np.random.default_rng(3)
    x = random.normal(0, 3, shape).astype(np.float32)
    scales = random.uniform(0.01, 0.1, shape[axis]).astype(np.float32)
    zeros = random.integers(low, high + 1, shape[axis])
    given = (aten.from_numpy(scales), aten.from_numpy(zeros), axis, low, high, dtype)
    q = ops.quantize_per_channel(aten.from_numpy(x), *given)
    expected = simulation.quantize(x, scales, zeros, low, high, axis)
    np.testing.assert_array_equal(q.numpy(), expected)
    back = ops.dequantize_per_channel(q, *given)
    np.testing.assert_array_equal(
        back.numpy(), simulation.dequantize(expected, scales, zeros, axis)
    )
    fake = ops.fake_quantize_per_channel_affine(
        aten.from_numpy(x), given[0], given[1].to(c10.int32), axis % len(shape), low, high
    )
    np.testing.assert_array_equal(fake.numpy(), back.numpy())
    transposed = aten.from_numpy(np.ascontiguousarray(x.T)).permute(*range(len(shape))[::-1])
    np.testing.assert_array_equal(ops.quantize_per_channel(transposed, *given).numpy(), expected)


def test_half_precision_goes_through_float32() -> None:
    x = aten.from_numpy(values(50)[14:]).to(c10.bfloat16)
    q = ops.quantize_per_tensor(x, 0.3, 7, 0, 255, c10.uint8)
    np.testing.assert_array_equal(q.numpy(), simulation.quantize(x.float().numpy(), 0.3, 7, 0, 255))
    back = ops.dequantize_per_tensor(q, 0.3, 7, 0, 255, c10.uint8, out_dtype=c10.bfloat16)
    assert back.dtype == c10.bfloat16


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [(c10.uint8, 0, 255), (c10.int8, -128, 127), (c10.uint8, 0, 127)],
    ids=str,
)
@pytest.mark.parametrize("shift", [0.0, 5.0, -5.0])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000, 200_000])
def test_choose_qparams_equals_numpy(n, shift, dtype, low, high) -> None:
    x = (np.random.default_rng(n).normal(0, 1, n) + shift).astype(np.float32)
    scale, zero = ops.choose_qparams_tensor(aten.from_numpy(x), low, high, 1e-5, dtype)
    expected = simulation.choose_affine(x, low, high, 1e-5)
    assert (scale.dtype, zero.dtype) == (c10.float64, c10.int64)
    assert (np.float32(scale.item()), zero.item()) == expected
    scale, zero = ops.choose_qparams_symmetric_tensor(aten.from_numpy(x), low, high, 1e-5, dtype)
    most = np.float32(np.abs(x).max(initial=0))
    assert np.float32(scale.item()) == max(most / np.float32((high - low) / 2), np.float32(1e-5))
    assert zero.item() == (0 if low < 0 else (high + 1) // 2)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(("n", "at"), [(1, 0), (65, 64), (200, 70), (200_000, 199_999)])
def test_choose_qparams_refuses_what_is_not_finite(n, at, bad) -> None:
    x = aten.ones(n)
    x[at] = bad
    for op in (ops.choose_qparams_tensor, ops.choose_qparams_symmetric_tensor):
        with pytest.raises(ValueError, match="choose_qparams.*: got values from .*expected finite"):
            op(x, 0, 255, 1e-5, c10.uint8)


def test_gradients_pass_where_nothing_was_clamped() -> None:
    x = aten.tensor([-3.0, -1.0, 0.04, 1.0, 30.0], requires_grad=True)
    weights = aten.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    y = ops.fake_quantize_per_tensor_affine(x, 0.1, 10, 0, 255)
    assert y.tolist() == pytest.approx([-1.0, -1.0, 0.0, 1.0, 24.5])
    (dx,) = grad((y * weights).sum(), x)
    assert dx.tolist() == [0.0, 2.0, 3.0, 4.0, 0.0]
    y = ops.fake_quantize_per_tensor_affine_tensor_qparams(
        x, aten.tensor([0.1]), aten.tensor([10]), 0, 255
    )
    (dx,) = grad((y * weights).sum(), x)
    assert dx.tolist() == [0.0, 2.0, 3.0, 4.0, 0.0]
    scales, zeros = (
        aten.tensor([0.1, 0.1, 0.1, 0.1, 0.2]),
        aten.tensor([0, 0, 0, 0, -128], dtype=c10.int32),
    )
    y = ops.fake_quantize_per_channel_affine(x, scales, zeros, 0, -128, 127)
    (dx,) = grad((y * weights).sum(), x)
    assert dx.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_other_operators_cut_gradients() -> None:
    x = aten.tensor([1.0], requires_grad=True)
    q = ops.quantize_per_tensor(x, 0.1, 0, 0, 255, c10.uint8)
    assert not ops.dequantize_per_tensor(q, 0.1, 0, 0, 255, c10.uint8).requires_grad


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0.0, 0, 0, 255, c10.uint8), ValueError, "got scale 0, expected a positive"),
        ((float("nan"), 0, 0, 255, c10.uint8), ValueError, "expected a positive"),
        ((0.1, 0, 0, 256, c10.uint8), ValueError, "within 0..255, that of uint8"),
        ((0.1, 0, -129, 127, c10.int8), ValueError, "within -128..127"),
        ((0.1, 0, 5, 4, c10.uint8), ValueError, "quant_min 5 and quant_max 4"),
        ((0.1, 0, 0, 1, c10.float32), c10.DTypeError, "got dtype float32, expected uint8"),
        ((0.1, 2**40, 0, 255, c10.uint8), ValueError, "integer of 32 bits"),
    ],
)
def test_bad_arguments(arguments, error, words) -> None:
    with pytest.raises(error, match=words):
        ops.quantize_per_tensor(aten.ones(3), *arguments)


def test_bad_channels() -> None:
    two = (aten.ones(2), aten.zeros(2, dtype=c10.int64))
    with pytest.raises(c10.ShapeError, match="got 2 scales and 2 zero points, expected 3 of each"):
        ops.quantize_per_channel(aten.ones(3, 4), *two, 0, 0, 255, c10.uint8)
    with pytest.raises(IndexError, match="got axis 2 for a tensor of 2 dimensions"):
        ops.quantize_per_channel(aten.ones(3, 4), *two, 2, 0, 255, c10.uint8)
    with pytest.raises(c10.DTypeError, match="got a tensor of int32, expected uint8"):
        ops.dequantize_per_tensor(aten.ones(3, dtype=c10.int32), 0.1, 0, 0, 255, c10.uint8)


@lower_tiers
def test_in_a_lower_tier(tier) -> None:
    run_again(__file__, tier)
