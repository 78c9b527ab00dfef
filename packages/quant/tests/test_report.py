"""The report of layers."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
from networks import default_quantizer, mixed, mixed_inputs, noise_ratio, quantized

import argand_aten as aten
import argand_autograd as autograd
import argand_nn as nn
from argand_c10 import manual_seed
from argand_export import export
from argand_quant import Limits, convert_pt2e, prepare_pt2e
from argand_quant.report import signal_to_noise


def chain(bad: int | None = None) -> Any:
    """Layers of one shape, one of them with weights that 8 bits hold badly: one of each row, for an input that is always 0, dwarfs the rest."""
    manual_seed(0)
    module = nn.Sequential(*[nn.Linear(64, 64) for _ in range(5)])
    if bad is not None:
        with autograd.no_grad():
            module[bad].weight[:, 0] = 40.0
            if bad > 0:
                module[bad - 1].weight[0] = 0.0
                module[bad - 1].bias[0] = 0.0
    return module


def calls() -> list[Any]:
    x = aten.randn(32, 64)
    x[:, 0] = 0.0
    return [(x,)]


@pytest.mark.parametrize("bad", [0, 2, 4])
def test_a_bad_layer_ranks_first(bad: int) -> None:
    module = chain(bad)
    report = quantized(module, calls(), default_quantizer()).report
    assert report.layers[0].name == str(bad)
    assert report.layers[0].signal_to_noise < report.layers[1].signal_to_noise - 10
    assert str(report).splitlines()[1].startswith(f"{bad}  ")
    # Alone it is bad by itself; what comes after it is good by itself, and bad all in all.
    after = [x for x in report.layers if int(x.name) > bad]
    for layer in after:
        assert layer.signal_to_noise > 30
    assert [x.signal_to_noise for x in report.layers] == sorted(
        x.signal_to_noise for x in report.layers
    )


def test_numbers_are_those_of_the_layer() -> None:
    module = nn.Sequential(nn.Linear(16, 8))
    (call,) = [(aten.randn(4, 16),)]
    converted = quantized(module, [call], default_quantizer())
    (layer,) = converted.report.layers
    noise = noise_ratio(converted(*call), module(*call))
    assert layer.signal_to_noise == pytest.approx(noise, abs=1e-3)
    assert layer.accumulated_signal_to_noise == pytest.approx(noise, abs=1e-3)
    assert 0 < layer.float_time < 1 and 0 < layer.quantized_time < 1


def test_noise_of_any_size() -> None:
    huge, nothing = aten.full((3,), 1e30), aten.zeros(3)
    assert signal_to_noise(huge, huge * 0.9) == pytest.approx(20, abs=1e-3)
    assert signal_to_noise(huge, huge) == math.inf
    assert signal_to_noise(nothing, huge) == -math.inf
    for bad in (math.inf, math.nan):
        assert signal_to_noise(huge, aten.full((3,), bad)) == -math.inf
        assert signal_to_noise(aten.full((3,), bad), huge) == -math.inf


def test_layers_and_their_operators() -> None:
    report = quantized(mixed(), [mixed_inputs()], default_quantizer()).report
    assert {x.name: x.operator for x in report.layers} == {
        "conv1": "convolution + relu",
        "conv2": "convolution + add + relu",
        "scores": "linear",
        "scores_": "linear",
        "table": "embedding",
        "max_pool2d_with_indices": "max_pool2d_with_indices",
    }
    assert all(x.signal_to_noise > 30 for x in report.layers)


def test_warnings() -> None:
    module = chain(1)
    prepared = prepare_pt2e(export(module, calls()[0]), default_quantizer())
    prepared(*calls()[0])
    with pytest.warns(UserWarning) as caught:
        convert_pt2e(prepared, limits=Limits(signal_to_noise=30, slowdown=1e9))
    (message,) = [str(w.message) for w in caught]
    assert "1: signal to noise" in message and "below 30" in message
    assert "2: signal" not in message
    with pytest.warns(UserWarning, match="0: .* ms on integers, .* ms in float"):
        convert_pt2e(prepared, limits=Limits(-math.inf, slowdown=0, least_difference=-1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        convert_pt2e(prepared, limits=Limits(signal_to_noise=-math.inf, slowdown=math.inf))
        convert_pt2e(prepared, limits=Limits(-math.inf, slowdown=0, least_difference=60.0))
        assert convert_pt2e(prepared, report=False).report is None
