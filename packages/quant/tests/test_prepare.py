"""Annotations and observers, against the graphs that they should give."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from networks import default_quantizer, mixed, mixed_inputs, operators, quantized

import argand_aten as aten
import argand_nn as nn
import argand_nn.functional as F
from argand_c10 import Module, Tensor, bfloat16, int8, int32, manual_seed, uint8
from argand_export import export
from argand_quant import (
    DerivedQuantizationSpec,
    FixedQParamsQuantizationSpec,
    HistogramObserver,
    MinMaxObserver,
    QuantizationAnnotation,
    QuantizationConfig,
    QuantizationSpec,
    Quantizer,
    SharedQuantizationSpec,
    X86InductorQuantizer,
    convert_pt2e,
    get_default_x86_inductor_quantization_config,
    per_channel_symmetric,
    per_tensor_symmetric,
    prepare_pt2e,
)


def observed(prepared: Any) -> dict[str, str]:
    """What each observer's nodes see: observer to the names of the values."""
    found: dict[str, str] = {}
    for node in prepared.program.graph.nodes:
        if node.op == "call_module":
            source, name = node.args[0].name, str(node.target).rpartition("_")[2]
            found[name] = f"{found[name]} {source}" if name in found else source
    return found


def test_default_quantizer() -> None:
    module = mixed()
    prepared = prepare_pt2e(export(module, mixed_inputs()), default_quantizer())
    seen = observed(prepared)
    # Everything between the layers shares one observer: pooling, cat and movement keep scales.
    shared = [v.split() for v in seen.values() if " " in v]
    assert len(shared) == 1
    assert shared[0][:3] == ["relu", "getitem_3", "relu_1"]
    assert [s.rstrip("_0123456789") for s in shared[0][3:]] == ["cat", "slice", "view"]
    assert {"p_conv1_weight", "p_conv2_weight", "p_scores_weight", "p_table_weight"} < {
        *seen.values()
    }
    assert {"x", "embedding"} < {*seen.values()}
    assert not any("activation_post_process" in v for v in seen.values())


def test_prepared_computes_what_the_module_does() -> None:
    module = mixed()
    prepared = prepare_pt2e(export(module, mixed_inputs()), default_quantizer())
    assert "native_batch_norm" not in operators(prepared.program)
    for _ in range(3):
        call = mixed_inputs()
        for got, wanted in zip(prepared(*call), module(*call), strict=True):
            assert float((got - wanted).abs().max()) < 2e-6


def test_the_program_stays_as_it_is() -> None:
    module = mixed()
    program = export(module, mixed_inputs())
    text, names = str(program), list(program.state_dict)
    weight = module.conv1.weight.tolist()
    prepared = prepare_pt2e(program.module(), default_quantizer())
    prepared(*mixed_inputs())
    convert_pt2e(prepared, report=False)
    assert str(program) == text and list(program.state_dict) == names
    assert module.conv1.weight.tolist() == weight


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["conv", "linear"])
def test_batch_norm_folds(kind: str, affine: bool, bias: bool) -> None:
    manual_seed(1)
    if kind == "conv":
        layers = (nn.Conv2d(3, 4, 3, bias=bias), nn.BatchNorm2d(4, affine=affine))
        shape: tuple[int, ...] = (8, 3, 6, 6)
    else:
        layers, shape = (nn.Linear(6, 4, bias=bias), nn.BatchNorm1d(4, affine=affine)), (8, 6)
    module = nn.Sequential(*layers)
    for _ in range(3):
        module(aten.randn(shape) * 2 + 1)
    module.eval()
    x = aten.randn(shape)
    prepared = prepare_pt2e(export(module, (x,)), X86InductorQuantizer())
    assert operators(prepared.program) == ["convolution" if kind == "conv" else "linear"]
    assert {*prepared.program.state_dict} == {"0.weight", "0.bias"}
    assert float((prepared(x) - module(x)).abs().max()) < 2e-6


def test_batch_norm_of_rows_stays() -> None:
    """Of (N, C, L) the channels are second, those of a linear layer last."""
    module = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(5)).eval()
    x = aten.randn(2, 5, 6)
    prepared = prepare_pt2e(export(module, (x,)), X86InductorQuantizer())
    assert "native_batch_norm" in operators(prepared.program)
    assert prepared(x).tolist() == module(x).tolist()


class Shared(Module):
    """One convolution, normalized in two ways."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norms = nn.ModuleList([nn.BatchNorm2d(2), nn.BatchNorm2d(2)])

    def forward(self, x: Tensor) -> Any:
        return self.norms[0](self.conv(x)), self.norms[1](self.conv(x + 1))


def test_batch_norm_of_shared_weights_stays() -> None:
    module = Shared().eval()
    x = aten.randn(1, 1, 5, 5)
    prepared = prepare_pt2e(export(module, (x,)), X86InductorQuantizer())
    assert operators(prepared.program).count("native_batch_norm") == 2
    for got, wanted in zip(prepared(x), module(x), strict=True):
        assert got.tolist() == wanted.tolist()


def test_settings() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)))
    program = export(module, (aten.randn(2, 4),))
    config = get_default_x86_inductor_quantization_config()

    def weights(quantizer: X86InductorQuantizer) -> list[str]:
        seen = observed(prepare_pt2e(program, quantizer)).values()
        return sorted(s for s in seen if s.endswith("weight"))

    everything = ["p_0_weight", "p_1_0_weight", "p_1_1_weight"]
    assert weights(X86InductorQuantizer().set_global(config)) == everything
    assert weights(default_quantizer().set_module_name_qconfig("1", None)) == ["p_0_weight"]
    only = X86InductorQuantizer().set_module_name_qconfig("1.1", config)
    assert weights(only) == ["p_1_1_weight"]
    assert weights(default_quantizer().set_module_type_qconfig(nn.Linear, None)) == []
    function = X86InductorQuantizer().set_function_type_qconfig(F.linear, config)
    assert weights(function) == everything
    with pytest.raises(ValueError, match="X86InductorQuantizer: got Dropout, expected one of"):
        X86InductorQuantizer().set_module_type_qconfig(nn.Dropout, config)


class Products(Module):
    def forward(self, x: Tensor) -> Tensor:
        return aten.softmax(x @ x.transpose(-1, -2), -1) @ x


def test_matmul_on_request() -> None:
    program = export(Products(), (aten.randn(2, 3, 4),))
    assert observed(prepare_pt2e(program, default_quantizer())) == {}
    config = get_default_x86_inductor_quantization_config()
    quantizer = X86InductorQuantizer().set_function_type_qconfig(aten.matmul, config)
    assert (
        len(observed(prepare_pt2e(program, quantizer))) == 3
    )  # x, its transpose, softmax's result


class Residual(Module):
    """The first add joins a float value, the second two quantized ones."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Any:
        return self.c(x + self.a(x)), self.c(self.a(x) + self.b(x))


def test_adds_only_between_quantized_layers() -> None:
    prepared = prepare_pt2e(export(Residual(), (aten.randn(2, 4),)), default_quantizer())
    adds = [n for n in prepared.program.graph.nodes if getattr(n.target, "name", "") == "add"]
    kinds = [[a.op for a in n.args] for n in adds]
    assert kinds == [["placeholder", "call_function"], ["call_module", "call_module"]]


def test_dynamic_needs_no_calibration() -> None:
    module = nn.Sequential(nn.Conv2d(1, 2, 1), nn.Flatten(), nn.Linear(8, 4))
    x = aten.randn(3, 1, 2, 2)
    with pytest.warns(UserWarning, match="convolutions have no dynamic quantization"):
        prepared = prepare_pt2e(export(module, (x,)), default_quantizer(is_dynamic=True))
    converted = convert_pt2e(prepared)
    assert converted.report is None  # nothing was run
    assert float((converted(x) - module(x)).abs().max()) < 0.02


# ---- a quantizer of one's own


class Custom(Quantizer):
    """Annotates by a function of the add and mul of `x + y`, `(x + y) * y`."""

    def __init__(self, annotate: Any) -> None:
        self.function = annotate

    def annotate(self, model: Any) -> Any:
        nodes = {getattr(n.target, "name", n.name): n for n in model.graph.nodes}
        for node, (inputs, output) in self.function(nodes).items():
            node.meta["quantization_annotation"] = QuantizationAnnotation(inputs, output)
        return model

    def validate(self, model: Any) -> None:
        pass


class Plain(Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + y) * y


UINT8 = QuantizationSpec(uint8, MinMaxObserver)
INT8 = QuantizationSpec(int8, HistogramObserver, -127, 127, per_tensor_symmetric)


def prepared_with(annotate: Any) -> Any:
    return prepare_pt2e(export(Plain(), (aten.randn(3), aten.randn(3))), Custom(annotate))


def test_equal_specs_of_a_value_share() -> None:
    def annotate(n: Any) -> Any:
        x, y, add, mul = n["x"], n["y"], n["add"], n["mul"]
        return {add: ({x: UINT8, y: UINT8}, INT8), mul: ({add: INT8, y: UINT8}, None)}

    prepared = prepared_with(annotate)
    assert sorted(observed(prepared).values()) == ["add", "x", "y"]
    kinds = {
        type(m).__name__ for n, m in prepared.named_children() if n.startswith("activation_post")
    }
    assert kinds == {"MinMaxObserver", "HistogramObserver"}


def test_different_specs_of_a_value() -> None:
    def annotate(n: Any) -> Any:
        x, y, add, mul = n["x"], n["y"], n["add"], n["mul"]
        return {add: ({x: UINT8, y: UINT8}, UINT8), mul: ({add: INT8, y: INT8}, None)}

    prepared = prepared_with(annotate)
    sources = sorted(observed(prepared).values())
    assert len(sources) == 5 and sources.count("y") == 2
    assert sum(s.startswith("activation_post_process") for s in sources) == 1  # of add's


def test_shared_fixed_and_derived() -> None:
    def annotate(n: Any) -> Any:
        x, y, add, mul = n["x"], n["y"], n["add"], n["mul"]

        def derive(observers: list[Any]) -> Any:
            scales = [o.calculate_qparams()[0] for o in observers]
            return scales[0] * scales[1], aten.tensor([0])

        fixed = FixedQParamsQuantizationSpec(uint8, 1 / 64, 128)
        derived = DerivedQuantizationSpec([(x, add), (y, mul)], derive, int32, -(2**31), 2**31 - 1)
        shared = SharedQuantizationSpec((x, add))
        return {
            add: ({x: UINT8, y: shared}, derived),
            mul: ({y: fixed}, SharedQuantizationSpec(add)),
        }

    prepared = prepared_with(annotate)
    seen = sorted(observed(prepared).values())
    assert seen == ["add mul", "x y", "y"]
    x, y = aten.tensor([0.5, 1.0, -1.0]), aten.tensor([0.25, -2.0, 1.0])
    prepared(x, y)
    text = str(convert_pt2e(prepared, report=False))
    scale = 3 / 255  # x and y together lie in -2..1
    assert f"{aten.tensor(scale).item()}, 170, 0, 255" in text
    assert "0.015625, 128, 0, 255" in text
    assert f"{(aten.tensor(scale) / 64).item()}, 0, -2147483648, 2147483647, dtype.int32" in text


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (lambda n: {n["mul"]: UINT8}, "got a spec for mul on add, which does not use it"),
        (
            lambda n: {n["x"]: SharedQuantizationSpec(n["mul"])},
            "SharedQuantizationSpec .* refers to mul, expected an edge or node with a spec",
        ),
        (
            lambda n: {
                n["x"]: SharedQuantizationSpec((n["y"], n["add"])),
                n["y"]: SharedQuantizationSpec((n["x"], n["add"])),
            },
            "refer to one another",
        ),
        (
            lambda n: {
                n["x"]: DerivedQuantizationSpec([n["mul"]], lambda observers: observers[0], int8)
            },
            "DerivedQuantizationSpec that refers to mul",
        ),
    ],
)
def test_annotations_that_do_not_fit(inputs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"prepare_pt2e: .*{message}"):
        prepared_with(lambda n: {n["add"]: (inputs(n), None)})


def test_specs_are_checked() -> None:
    with pytest.raises(ValueError, match="expected a part of int8's -128 to 127"):
        QuantizationSpec(int8, MinMaxObserver, -129, 0)
    with pytest.raises(ValueError, match="got ch_axis=-1, expected 0 or more"):
        QuantizationSpec(int8, MinMaxObserver, qscheme=per_channel_symmetric, ch_axis=-1)
    with pytest.raises(ValueError, match="expected a positive scale"):
        FixedQParamsQuantizationSpec(uint8, 0.0, 0)
    training = export(mixed().train(), mixed_inputs())
    with pytest.raises(ValueError, match="batch normalization in training mode"):
        prepare_pt2e(training, X86InductorQuantizer())
    with pytest.raises(TypeError, match="prepare_pt2e: got Linear, expected an ExportedProgram"):
        prepare_pt2e(nn.Linear(2, 2), X86InductorQuantizer())
    with pytest.raises(TypeError, match="convert_pt2e: got Linear, expected what prepare_pt2e"):
        convert_pt2e(nn.Linear(2, 2))  # type: ignore[arg-type]


def test_programs_that_draw_random_numbers() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    with pytest.warns(UserWarning, match="draws random numbers .*dropout.*export model.eval"):
        prepare_pt2e(export(module.train(), (aten.randn(2, 4),)), default_quantizer())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepare_pt2e(export(module.eval(), (aten.randn(2, 4),)), default_quantizer())


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_values_that_are_not_finite_are_named(bad: float) -> None:
    module, x = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)), aten.randn(2, 4)
    spec = QuantizationSpec(uint8, MinMaxObserver)
    config = QuantizationConfig(spec, spec, get_default_x86_inductor_quantization_config().weight)
    prepared = prepare_pt2e(export(module, (x,)), X86InductorQuantizer().set_global(config))
    x[0, 0] = bad
    prepared(x)
    with pytest.raises(ValueError, match="convert_pt2e: input_1: MinMaxObserver: got values from"):
        convert_pt2e(prepared)
    module[1].weight.data[0, 0] = bad
    prepared = prepare_pt2e(export(module, (x,)), default_quantizer(is_dynamic=True))
    with pytest.raises(ValueError, match="1.weight: PerChannelMinMaxObserver: got values from"):
        convert_pt2e(prepared)


def test_settings_that_choose_nothing_warn() -> None:
    module, x = nn.Sequential(nn.Linear(4, 4)), aten.randn(2, 4)
    program = export(module, (x,))
    with pytest.warns(UserWarning, match="settings for the module head, which has no parameters"):
        prepare_pt2e(program, default_quantizer().set_module_name_qconfig("head", None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = get_default_x86_inductor_quantization_config()
        prepare_pt2e(program, X86InductorQuantizer().set_module_name_qconfig("0", config))
    half = export(module.to(bfloat16), (x.to(bfloat16),))
    with pytest.warns(UserWarning, match="prepare_pt2e: X86InductorQuantizer chose nothing"):
        prepare_pt2e(half, default_quantizer())
    with pytest.raises(TypeError, match="prepare_pt2e: got a quantizer of type NoneType"):
        prepare_pt2e(program, None)  # type: ignore[arg-type]


def test_conversion_needs_calibration() -> None:
    prepared = prepare_pt2e(export(nn.Linear(4, 4), (aten.randn(2, 4),)), default_quantizer())
    with pytest.raises(RuntimeError, match="HistogramObserver: has seen no values"):
        convert_pt2e(prepared)
    prepared(aten.randn(2, 4))
    again = prepare_pt2e(export(nn.Linear(4, 4), (aten.randn(2, 4),)), default_quantizer())
    again.load_state_dict(prepared.state_dict())  # calibration is state
    x = aten.randn(2, 4)
    assert again(x).shape == (2, 4)
    assert operators(quantized(nn.Linear(4, 4), [(x,)], default_quantizer()))
