"""Converted programs: what they compute, and that they are programs as others."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import default_quantizer, mixed, mixed_inputs, noise_ratio, operators, quantized

import argand_aten as aten
import argand_autograd as autograd
import argand_nn as nn
from argand_c10 import Module, Tensor, manual_seed, uint8
from argand_export import Dim, export, load, load_package, package, save
from argand_quant import (
    FixedQParamsQuantizationSpec,
    QuantizationAnnotation,
    Quantizer,
    X86InductorQuantizer,
    convert_pt2e,
    get_default_x86_inductor_quantization_config,
    prepare_pt2e,
)
from argand_quant.patterns import QUANTIZE, name_of


def same(got: Any, wanted: Any) -> None:
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype and a.tolist() == b.tolist()


def near(got: Tensor, wanted: Tensor, decibels: float) -> None:
    assert noise_ratio(got, wanted) > decibels


@pytest.fixture(scope="module")
def converted() -> Any:
    return quantized(mixed(), [mixed_inputs() for _ in range(8)], default_quantizer())


def test_near_the_float_program(converted: Any) -> None:
    module = mixed()
    for _ in range(4):
        call = mixed_inputs()
        for got, wanted in zip(converted(*call), module(*call), strict=True):
            near(got, wanted, 30)


def test_weights_are_integers(converted: Any) -> None:
    assert sorted(converted.state_dict) == ["conv1.bias", "conv2.bias", "scores.bias"]
    weight = mixed().scores.weight.detach().numpy()
    constants = converted.graph_module.state_dict()
    scales = np.maximum(np.abs(weight).max(1) / np.float32(127.5), np.float32(2**-12))
    integers = np.clip(np.rint(weight * (np.float32(1) / scales)[:, None]), -128, 127)
    np.testing.assert_array_equal(constants["scores_weight_int8"].numpy(), integers)
    np.testing.assert_array_equal(constants["scores_weight_scales"].numpy(), scales)
    assert sum(n.startswith("scores_weight_int8") for n in constants) == 1  # used twice, kept once


def test_saves_and_loads(converted: Any) -> None:
    file = io.BytesIO()
    save(converted, file)
    file.seek(0)
    again = load(file)
    assert str(again.graph) == str(load(io.BytesIO(file.getvalue())).graph)
    call = mixed_inputs()
    same(again(*call), converted(*call))
    assert len(file.getvalue()) < 64_000


def test_packages(converted: Any, tmp_path: Path) -> None:
    """Compiled it adds products as integers, where the graph run as it is adds floats."""
    package(converted, tmp_path / "mixed.ag2p")
    call = mixed_inputs()
    packed = load_package(tmp_path / "mixed.ag2p")
    for got, wanted in zip(packed(*call), converted(*call), strict=True):
        near(got, wanted, 45)


def test_module_and_sizes_that_vary() -> None:
    manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5)).eval()
    shapes = ({0: Dim("batch", max=64)},)
    program = export(module, (aten.randn(3, 1, 6, 6),), dynamic_shapes=shapes)
    calls = [(aten.randn(n, 1, 6, 6),) for n in (2, 64)]
    converted = quantized(program, calls, default_quantizer())
    for n in (1, 5, 64):
        x = aten.randn(n, 1, 6, 6)
        near(converted(x), module(x), 30)
        same([converted.module()(x)], [converted(x)])
    with pytest.raises(ValueError, match="batch"):
        converted(aten.randn(65, 1, 6, 6))


def test_movement_is_of_integers(converted: Any) -> None:
    """Between quantize and dequantize with equal parameters nothing is left in float but the pooling."""
    for node in converted.graph.nodes:
        if getattr(node.target, "name", "") in ("cat", "slice", "view"):
            assert node.meta["val"].dtype.name == "uint8"


class Attend(Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.project(x)
        return aten.softmax(y @ x.transpose(-1, -2), -1) @ x


def test_matmul() -> None:
    manual_seed(0)
    module, calls = Attend(), [(aten.randn(2, 6, 8),) for _ in range(4)]
    config = get_default_x86_inductor_quantization_config()
    quantizer = X86InductorQuantizer().set_function_type_qconfig(aten.matmul, config)
    converted = quantized(module, calls, quantizer)
    near(converted(*calls[0]), module(*calls[0]), 25)


def test_dynamic() -> None:
    manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    converted = quantized(module, [(aten.randn(3, 16),)], default_quantizer(is_dynamic=True))
    assert sum("choose_qparams" in name for name in operators(converted)) == 2
    for scale in (1e-3, 1.0, 1e3):  # each input has a scale of its own
        x = aten.randn(3, 16) * scale
        layer = module[0](x)
        assert layer.shape == (3, 32)
        near(converted(x), module(x), 25)


class Counts(Module):
    """A buffer that changes is no constant."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("calls", aten.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return self.layer(x) * self.calls


def test_buffers_that_change() -> None:
    module, x = Counts(), aten.randn(2, 4)
    program = export(module, (x,))
    prepared = prepare_pt2e(program, default_quantizer())
    prepared(x), prepared(x)
    converted = convert_pt2e(prepared, report=False)
    near(converted(x), module.layer(x) * 3, 30)
    assert converted.state_dict["calls"].item() == 3
    assert prepared.state_dict()["calls"].item() == 2
    assert module.calls.item() == 0  # calibration is not the module's


def test_clamps_that_saturation_repeats() -> None:
    manual_seed(0)
    layers = [nn.Conv2d(1, 4, 1), nn.ReLU6(), nn.Conv2d(4, 4, 1), nn.ReLU(), nn.Conv2d(4, 2, 1)]
    module, calls = nn.Sequential(*layers), [(aten.randn(2, 1, 6, 6) * 20,) for _ in range(4)]
    with autograd.no_grad():
        module[0].bias += 3.0
    assert float(module[:2](calls[0][0]).max()) == 6.0
    converted = quantized(module, calls, default_quantizer())
    assert not {"relu", "hardtanh"} & {*operators(converted)}
    near(converted(*calls[0]), module(*calls[0]), 25)


class Fixed(Quantizer):
    """The inputs of linear layers in -2..2."""

    def annotate(self, model: Any) -> Any:
        spec = FixedQParamsQuantizationSpec(uint8, 1 / 64, 128)
        for node in model.graph.nodes:
            if name_of(node) == "linear":
                node.meta["quantization_annotation"] = QuantizationAnnotation({node.args[0]: spec})
        return model

    def validate(self, model: Any) -> None:
        pass


def test_clamps_within_the_range_stay() -> None:
    module = nn.Sequential(nn.ReLU(), nn.Linear(4, 4), nn.Hardtanh(-3, 3), nn.Linear(4, 4))
    converted = quantized(module, [(aten.randn(8, 4),)], Fixed())
    assert operators(converted).count("relu") == 1 and "hardtanh" not in operators(converted)


@pytest.mark.parametrize("reduce_range", [False, True])
def test_fake_quantize_in_the_place_of_observers(reduce_range: bool) -> None:
    manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    config = {"is_qat": True, "reduce_range": reduce_range}
    calls = [(aten.randn(8, 16),) for _ in range(4)]
    converted = quantized(module, calls, default_quantizer(**config))
    near(converted(*calls[0]), module(*calls[0]), 20)
    high = 127 if reduce_range else 255
    limits = {n.args[4] for n in converted.graph.nodes if name_of(n) == QUANTIZE}
    assert limits == {high}
