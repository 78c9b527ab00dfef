"""Observers against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argand_aten as aten
import argand_nn  # noqa: F401  (modules complete tensors)
from argand_c10 import Tensor, int8, uint8
from argand_quant import (
    FakeQuantize,
    FixedQParamsObserver,
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    per_channel_affine,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)

EPS = float(np.finfo(np.float32).eps)


def batches() -> list[Any]:
    rng = np.random.default_rng(0)
    parts = ((1.0, 0.0), (2.0, 0.3), (0.5, -1.0))
    return [(rng.standard_normal((4, 6, 5)) * s + o).astype(np.float32) for s, o in parts]


def expected(low: Any, high: Any, quant: tuple[int, int], symmetric: bool) -> tuple[Any, Any]:
    """Scales and zero points by the formula that observers promise."""
    low, high = np.minimum(low, 0).astype(np.float32), np.maximum(high, 0).astype(np.float32)
    steps = quant[1] - quant[0]
    if symmetric:
        scale = np.maximum(np.maximum(-low, high) / np.float32(steps / 2), np.float32(EPS))
        middle = 0 if quant[0] < 0 else 128 if quant[1] == 255 else sum(quant) // 2
        return scale, np.full(scale.shape, middle)
    scale = np.maximum((high - low) / np.float32(steps), np.float32(EPS))
    return scale, np.clip(quant[0] - np.rint(low / scale).astype(np.int64), *quant)


def observe(observer: Any, values: list[Any]) -> tuple[Any, Any]:
    for x in values:
        given = aten.from_numpy(x)
        assert observer(given) is given
    scale, zero = observer.calculate_qparams()
    assert scale.dtype.name == "float32" and zero.dtype.name == "int64"
    return scale.numpy(), zero.numpy()


def check(observer: Any, low: Any, high: Any, values: list[Any] | None = None) -> None:
    scale, zero = observe(observer, batches() if values is None else values)
    quant = (observer.quant_min, observer.quant_max)
    wanted = expected(np.atleast_1d(low), np.atleast_1d(high), quant, observer.qscheme.symmetric)
    np.testing.assert_array_equal(scale, wanted[0])
    np.testing.assert_array_equal(zero, wanted[1])


RANGES = [(uint8, None), (int8, None), (int8, (-127, 127)), (uint8, (0, 127))]


@pytest.mark.parametrize("scheme", [per_tensor_affine, per_tensor_symmetric])
@pytest.mark.parametrize(("dtype", "limits"), RANGES)
def test_per_tensor(scheme: Any, dtype: Any, limits: Any) -> None:
    quant = {} if limits is None else {"quant_min": limits[0], "quant_max": limits[1]}
    xs = batches()
    observer = MinMaxObserver(dtype=dtype, qscheme=scheme, **quant)
    check(observer, min(x.min() for x in xs), max(x.max() for x in xs))
    low, high = xs[0].min(), xs[0].max()
    for x in xs[1:]:
        low = low + np.float32(0.25) * (x.min() - low)
        high = high + np.float32(0.25) * (x.max() - high)
    moving = MovingAverageMinMaxObserver(
        averaging_constant=0.25, dtype=dtype, qscheme=scheme, **quant
    )
    check(moving, low, high)


@pytest.mark.parametrize("scheme", [per_channel_affine, per_channel_symmetric])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_channel(scheme: Any, axis: int) -> None:
    xs = batches()
    others = tuple(d for d in range(3) if d != axis)
    lows, highs = [x.min(others) for x in xs], [x.max(others) for x in xs]
    observer = PerChannelMinMaxObserver(axis, dtype=int8, qscheme=scheme)
    check(observer, np.min(lows, 0), np.max(highs, 0))
    low, high = lows[0], highs[0]
    for new_low, new_high in zip(lows[1:], highs[1:], strict=True):
        low = low + np.float32(0.25) * (new_low - low)
        high = high + np.float32(0.25) * (new_high - high)
    moving = MovingAveragePerChannelMinMaxObserver(0.25, axis, dtype=int8, qscheme=scheme)
    check(moving, low, high)


@pytest.mark.parametrize(
    ("values", "scale", "zero"),
    [([3.0, 5.0], 5.0 / 255, 0), ([-4.0, -1.0], 4.0 / 255, 255), ([0.0, 0.0], EPS, 0)],
)
def test_zero_is_in_the_range(values: list[float], scale: float, zero: int) -> None:
    got = observe(MinMaxObserver(dtype=uint8), [np.array(values, np.float32)])
    assert got[0] == np.float32(scale) and got[1] == zero


def test_symmetric_uses_the_larger_side() -> None:
    observer = MinMaxObserver(dtype=int8, qscheme=per_tensor_symmetric)
    scale, zero = observe(observer, [np.array([-0.5, 2.0], np.float32)])
    assert scale == np.float32(2.0) / np.float32(127.5) and zero == 0


def simulated_error(values: Any, low: float, high: float) -> float:
    """Mean squared error of 16 integers for a range."""
    step = (high - low) / 16
    level = np.clip(np.floor((values - low) / step), 0, 15)
    return float(((low + (level + 0.5) * step - values) ** 2).mean())


def test_histogram_finds_a_better_range() -> None:
    rng = np.random.default_rng(1)
    xs = [rng.standard_normal((64, 400)).astype(np.float32) * s for s in (1, 1.7, 0.2)]
    observer = HistogramObserver(dtype=uint8, quant_min=0, quant_max=15)
    observe(observer, xs)
    low, high = observer.best_range()
    everything = np.concatenate([x.ravel() for x in xs])
    assert everything.min() < low < high < everything.max()
    error = simulated_error(everything, low, high)
    assert error < 0.7 * simulated_error(everything, everything.min(), everything.max())
    # No range that is a few steps off on either side is much better.
    for a in np.linspace(0.8, 1.25, 7):
        for b in np.linspace(0.8, 1.25, 7):
            assert error < 1.05 * simulated_error(everything, low * a, high * b)


def test_histogram_keeps_evenly_spread_values() -> None:
    xs = [np.linspace(-1, 2, 3000, dtype=np.float32)]
    scale, zero = observe(HistogramObserver(dtype=uint8), xs)
    assert abs(scale[0] - 3 / 255) < 2e-4 and abs(int(zero[0]) - 85) <= 1


def test_histogram_counts_all_when_its_range_grows() -> None:
    observer = HistogramObserver(bins=64)
    for scale in (1, 4, 2, 9):
        observer(aten.from_numpy(np.linspace(-scale, scale, 1001, dtype=np.float32)))
    assert float(observer.histogram.sum()) == pytest.approx(4004, rel=1e-5)
    assert observer.min_val.item() == -9 and observer.max_val.item() == 9
    # The share within [-1, 1]: 1 + 1/4 + 1/2 + 1/9 of 1,001 values.
    width = 18 / 64
    inside = float(observer.histogram[28:36].sum()) / 1001
    assert inside == pytest.approx(4 * width * (1 + 1 / 4 + 1 / 2 + 1 / 9), rel=0.15)


def test_histogram_of_one_value() -> None:
    observer = HistogramObserver()
    observer(aten.full((5,), 3.0))
    observer(aten.full((2,), 3.0))
    assert float(observer.histogram.sum()) == 7
    assert observer.calculate_qparams()[0].item() == pytest.approx(3 / 255)
    observer(aten.tensor([0.0, 6.0]))
    assert float(observer.histogram.sum()) == 9
    assert float(observer.histogram[1023:1025].sum()) == 7


def test_histogram_refuses_infinite_values() -> None:
    with pytest.raises(ValueError, match="HistogramObserver: got values from 1.0 to inf"):
        HistogramObserver()(aten.tensor([1.0, float("inf")]))


ALL = [
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    PerChannelMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    HistogramObserver,
]


@pytest.mark.parametrize("kind", ALL)
def test_nothing_seen(kind: Any) -> None:
    observer = kind()
    observer(aten.empty(0))
    with pytest.raises(RuntimeError, match=f"{kind.__name__}: has seen no values"):
        observer.calculate_qparams()


@pytest.mark.parametrize("kind", ALL)
def test_state_is_kept(kind: Any) -> None:
    observer = kind(dtype=uint8)
    wanted = observe(observer, batches())
    again = kind(dtype=uint8)
    again.load_state_dict(observer.state_dict())
    got = again.calculate_qparams()
    assert got[0].tolist() == wanted[0].tolist() and got[1].tolist() == wanted[1].tolist()
    observer.reset_min_max_vals()
    with pytest.raises(RuntimeError, match="has seen no values"):
        observer.calculate_qparams()


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="expected one per tensor; use PerChannelMinMaxObserver"):
        MinMaxObserver(qscheme=per_channel_affine)
    with pytest.raises(ValueError, match="expected one per channel; use MinMaxObserver"):
        PerChannelMinMaxObserver(qscheme=per_tensor_affine)
    with pytest.raises(ValueError, match="scales per channel are fixed"):
        PerChannelMinMaxObserver(is_dynamic=True)
    with pytest.raises(ValueError, match="expected a part of uint8's 0 to 255"):
        MinMaxObserver(dtype=uint8, quant_min=-1, quant_max=255)
    with pytest.raises(ValueError, match="got dtype float32, expected an integer type"):
        PlaceholderObserver(dtype=aten.ones(1).dtype)


def test_fixed_and_placeholder() -> None:
    scale, zero = FixedQParamsObserver(1 / 256, 3, dtype=uint8).calculate_qparams()
    assert scale.tolist() == [1 / 256] and zero.tolist() == [3]
    with pytest.raises(TypeError, match="PlaceholderObserver: gives no scale"):
        PlaceholderObserver(is_dynamic=True).calculate_qparams()


def fake_quantized(x: Any, scale: Any, zero: Any, quant: tuple[int, int]) -> tuple[Any, Any]:
    """The values, and which were not clamped."""
    integers = np.rint(x * (np.float32(1) / scale)).astype(np.int64) + zero
    inside = (integers >= quant[0]) & (integers <= quant[1])
    return (np.clip(integers, *quant) - zero).astype(np.float32) * scale, inside


@pytest.mark.parametrize("per_channel", [False, True])
def test_fake_quantize(per_channel: bool) -> None:
    observer = MovingAveragePerChannelMinMaxObserver if per_channel else MovingAverageMinMaxObserver
    scheme = per_channel_symmetric if per_channel else per_tensor_affine
    module = FakeQuantize(observer, -128, 127, dtype=int8, qscheme=scheme)
    first, second = batches()[:2]
    module(aten.from_numpy(first))
    module.disable_observer()
    x = aten.from_numpy(second).requires_grad_()
    result: Tensor = module(x)
    result.backward(aten.full(x.shape, 2.0))
    scale, zero = module.scale.numpy(), module.zero_point.numpy()
    if per_channel:
        scale, zero = scale.reshape(-1, 1, 1), zero.reshape(-1, 1, 1)
    values, inside = fake_quantized(second, scale, zero, (-128, 127))
    assert 0 < inside.sum() < inside.size  # some are clamped: the second batch is wider
    np.testing.assert_array_equal(result.detach().numpy(), values)
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), np.where(inside, 2.0, 0.0))
    module.disable_fake_quant()
    assert module(x) is x
