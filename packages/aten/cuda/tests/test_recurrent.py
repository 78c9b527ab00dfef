"""Recurrent layers by one kernel on an emulated CUDA device, against the CPU's, which go step by step."""

from __future__ import annotations

from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10

emulated.start()
RNG = np.random.default_rng(0)


def values(*shape: int, dtype: Any = c10.float32) -> Any:
    return aten.tensor(RNG.standard_normal(shape) * 0.5).to(dtype)


def same(layer: Any, *arguments: Any, tolerance: float = 1e-5) -> None:
    emulated.launches.clear()
    expected = layer(*arguments)
    got = layer(*(a.to("cuda") if isinstance(a, c10.Tensor) else a for a in arguments))
    emulated.check()
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, expected)), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype and str(a.device) == "cuda:0"
        a, b = a.to("cpu").to(c10.float64), b.to(c10.float64)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


def launched() -> set[str]:
    return {name.split(";")[0] for name in emulated.launches}


@pytest.mark.parametrize("size", [3, 16, 70])
@pytest.mark.parametrize("reverse", [False, True])
def test_layers(size: int, reverse: bool) -> None:
    steps, batch = 4, 3

    def of(gates: int) -> tuple[Any, Any, Any]:
        x, w = values(steps, batch, gates * size), values(gates * size, size) * size**-0.5
        return x, values(batch, size), w

    x, h, w = of(4)
    same(aten.lstm_layer, x, h, values(batch, size), w, reverse)
    assert launched() == {"recurrent_layer"}
    x, h, w = of(3)
    same(aten.gru_layer, x, h, w, values(3 * size), reverse)
    same(aten.gru_layer, x, h, w, None, reverse)
    x, h, w = of(1)
    for relu in (False, True):
        same(aten.rnn_layer, x, h, w, relu, reverse)
        assert launched() == {"recurrent_layer"}


def test_dtypes_and_strides() -> None:
    for dtype, tolerance in ((c10.float64, 1e-12), (c10.bfloat16, 2e-2)):
        x, h = values(3, 2, 20, dtype=dtype), values(2, 5, dtype=dtype)
        same(aten.lstm_layer, x, h, h * 2, values(20, 5, dtype=dtype), tolerance=tolerance)
    x, h, w = values(2, 3, 12), values(4, 2), values(4, 12)
    same(lambda x, h, w: aten.lstm_layer(x.transpose(0, 1)[:, :, :8], h.t()[:, 2:], h.t()[:, :2], w.t()[:8, :2]), x, h, w)  # fmt: skip


def test_large_layers_go_step_by_step() -> None:
    same(aten.rnn_layer, values(2, 1, 260), values(1, 260), values(260, 260) * 0.05)
    assert "recurrent_layer" not in launched()
    with pytest.raises(c10.ShapeError, match=r"lstm_layer: expected input of shape"):
        x = values(2, 8).to("cuda")
        aten.lstm_layer(x, x, x, x)
