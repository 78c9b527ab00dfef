"""Observers, fake quantization and the quantize operators beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # defines operators
from torch.ao.quantization import fake_quantize as peer_fake_quantize
from torch.ao.quantization import observer as peer_observer

import argand
from argand.ao.quantization import fake_quantize, observer
from argand_quant import operators

DTYPES = {"uint8": (argand.uint8, torch.quint8), "int8": (argand.int8, torch.qint8)}
RANGES = [("uint8", None), ("int8", None), ("int8", (-127, 127)), ("uint8", (0, 127))]
TENSOR_SCHEMES = ["per_tensor_affine", "per_tensor_symmetric"]
CHANNEL_SCHEMES = ["per_channel_affine", "per_channel_symmetric"]


def batches() -> list[Any]:
    rng = np.random.default_rng(0)
    parts = ((1.0, 0.0), (2.0, 0.3), (0.5, -1.0))
    return [(rng.standard_normal((4, 6, 5)) * s + o).astype(np.float32) for s, o in parts]


def pair(kind: str, dtype: str, scheme: str, limits: Any = None, **rest: Any) -> tuple[Any, Any]:
    """The observers of both."""
    quant = {} if limits is None else {"quant_min": limits[0], "quant_max": limits[1]}
    ours = getattr(observer, kind)(
        dtype=DTYPES[dtype][0], qscheme=getattr(argand, scheme), **quant, **rest
    )
    peer = getattr(peer_observer, kind)(
        dtype=DTYPES[dtype][1], qscheme=getattr(torch, scheme), **quant, **rest
    )
    for x in batches():
        ours(argand.from_numpy(x.copy()))
        peer(torch.from_numpy(x.copy()))
    return ours.calculate_qparams(), peer.calculate_qparams()


def same(ours: Any, peer: Any) -> None:
    np.testing.assert_allclose(ours[0].numpy(), peer[0].numpy().reshape(-1), rtol=3e-7)
    np.testing.assert_array_equal(ours[1].numpy(), peer[1].numpy().reshape(-1))


@pytest.mark.parametrize("scheme", TENSOR_SCHEMES)
@pytest.mark.parametrize(("dtype", "limits"), RANGES)
def test_per_tensor(dtype: str, limits: Any, scheme: str) -> None:
    same(*pair("MinMaxObserver", dtype, scheme, limits))
    same(*pair("MovingAverageMinMaxObserver", dtype, scheme, limits, averaging_constant=0.1))


@pytest.mark.parametrize("scheme", CHANNEL_SCHEMES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_per_channel(axis: int, scheme: str) -> None:
    same(*pair("PerChannelMinMaxObserver", "int8", scheme, ch_axis=axis))
    moving = "MovingAveragePerChannelMinMaxObserver"
    same(*pair(moving, "int8", scheme, ch_axis=axis, averaging_constant=0.1))


def error(x: Any, qparams: Any) -> float:
    """Mean squared error of uint8."""
    scale, zero = (float(v.reshape(-1)[0]) for v in qparams)
    integers = np.clip(np.rint(x / scale) + zero, 0, 255)
    return float((((integers - zero) * scale - x) ** 2).mean())


@pytest.mark.parametrize("power", [1, 2, 3])
def test_histogram_is_as_good(power: int) -> None:
    rng = np.random.default_rng(power)
    values = [(rng.standard_normal((64, 200)) ** power).astype(np.float32) * s for s in (1, 1.7)]
    ours = observer.HistogramObserver(dtype=argand.uint8)
    peer = peer_observer.HistogramObserver(dtype=torch.quint8)
    for x in values:
        ours(argand.from_numpy(x.copy()))
        peer(torch.from_numpy(x.copy()))
    everything = np.concatenate([x.ravel() for x in values])
    errors = [error(everything, o.calculate_qparams()) for o in (ours, peer)]
    assert errors[0] <= errors[1] * 1.02


@pytest.mark.parametrize("channels", [False, True])
def test_fake_quantize(channels: bool) -> None:
    kind = "MovingAveragePerChannelMinMaxObserver" if channels else "MovingAverageMinMaxObserver"
    scheme = "per_channel_symmetric" if channels else "per_tensor_affine"
    limits = {"quant_min": -128, "quant_max": 127}
    ours = fake_quantize.FakeQuantize(
        getattr(observer, kind), dtype=argand.int8, qscheme=getattr(argand, scheme), **limits
    )
    peer = peer_fake_quantize.FakeQuantize(
        getattr(peer_observer, kind), dtype=torch.qint8, qscheme=getattr(torch, scheme), **limits
    )
    for x in batches():
        a = argand.from_numpy(x.copy()).requires_grad_()
        b = torch.from_numpy(x.copy()).requires_grad_()
        y, z = ours(a), peer(b)
        np.testing.assert_allclose(
            y.detach().numpy(), z.detach().numpy(), rtol=1e-5, atol=float(ours.scale.max()) * 1.01
        )
        off = (y.detach().numpy() != z.detach().numpy()).mean()
        assert off < 0.02  # scales differ in the last bit at most
        y.sum().backward()
        z.sum().backward()
        np.testing.assert_array_equal(a.grad.numpy(), b.grad.numpy())


def test_operators() -> None:
    peer = torch.ops.quantized_decomposed
    x = batches()[1]
    a, b = argand.from_numpy(x.copy()), torch.from_numpy(x.copy())
    ours = operators.quantize_per_tensor(a, 0.031, 7, 0, 255, argand.uint8)
    theirs = peer.quantize_per_tensor(b, 0.031, 7, 0, 255, torch.uint8)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    np.testing.assert_array_equal(
        operators.dequantize_per_tensor(ours, 0.031, 7, 0, 255, argand.uint8).numpy(),
        peer.dequantize_per_tensor(theirs, 0.031, 7, 0, 255, torch.uint8).numpy(),
    )
    found = operators.choose_qparams_tensor(a, 0, 255, 2.0**-12, argand.uint8)
    wanted = peer.choose_qparams.tensor(b, 0, 255, 2.0**-12, torch.uint8)
    np.testing.assert_allclose(found[0].numpy(), wanted[0].numpy().reshape(-1), rtol=3e-7)
    assert found[1].tolist() == wanted[1].reshape(-1).tolist()
    scales = (np.arange(6, dtype=np.float32) + 1) / 50
    ours = operators.quantize_per_channel(
        a, argand.from_numpy(scales), argand.zeros(6, dtype=argand.int64), 1, -128, 127, argand.int8
    )
    theirs = peer.quantize_per_channel(
        b, torch.from_numpy(scales), torch.zeros(6, dtype=torch.int64), 1, -128, 127, torch.int8
    )
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
