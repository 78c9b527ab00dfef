"""Compiled int8 programs whose speed is measured, as PT2E makes them: dequantize, operator and quantize, which each compiler turns into
operators on integers. The peer's compiler is told that weights are constants (`freezing`), without which it does not.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from benchmarks.cases import Case, Names

BEFORE = (0.05, 3, 0, 255)
AFTER = (0.9, 3, 0, 255)


def operators(torch: ModuleType) -> Any:
    """The operators of the namespace quantized_decomposed; makes the peer ready."""
    if torch.__name__ == "argand":
        from argand_quant import operators as found

        return found
    importlib.import_module("torch.ao.quantization.fx._decomposed")  # defines them
    config: Any = importlib.import_module("torch._inductor.config")
    config.freezing = True

    known = torch.ops.quantized_decomposed
    return SimpleNamespace(
        choose_qparams_tensor=known.choose_qparams.tensor,
        quantize_per_tensor=known.quantize_per_tensor,
        quantize_per_tensor_tensor=known.quantize_per_tensor.tensor,
        dequantize_per_tensor=known.dequantize_per_tensor,
        dequantize_per_tensor_tensor=known.dequantize_per_tensor.tensor,
        dequantize_per_channel=known.dequantize_per_channel,
    )


def program(
    torch: ModuleType, weight: tuple[int, ...], apply: Callable[..., Any], dynamic: bool = False
) -> Any:
    """`x` quantized, `apply(x, weight, bias)`, relu, quantized again unless the input's parameters are found in it."""
    ops = operators(torch)
    uint8, int8 = torch.uint8, torch.int8

    class Program(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.register_buffer("weight", torch.randint(-128, 128, weight).to(int8))
            self.register_buffer("scales", torch.rand(weight[0]) * 0.01 + 0.001)
            zeros = (
                None if torch.__name__ == "argand" else torch.zeros(weight[0], dtype=torch.int64)
            )
            self.register_buffer("zeros", zeros)
            self.register_buffer("bias", torch.randn(weight[0]))

        def forward(self, x: Any) -> Any:
            if dynamic:
                found = ops.choose_qparams_tensor(x, 0, 255, 1e-5, uint8)
                q = ops.quantize_per_tensor_tensor(x, *found, 0, 255, uint8)
                d = ops.dequantize_per_tensor_tensor(q, *found, 0, 255, uint8)
            else:
                q = ops.quantize_per_tensor(x, *BEFORE, uint8)
                d = ops.dequantize_per_tensor(q, *BEFORE, uint8)
            w = ops.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -128, 127, int8)
            y = torch.nn.functional.relu(apply(d, w, self.bias))
            return y if dynamic else ops.quantize_per_tensor(y, *AFTER, uint8)

    return torch.compile(Program().eval())


def _linear(dynamic: bool = False) -> Callable[[ModuleType], Names]:
    def set_up(torch: ModuleType) -> Names:
        model = program(torch, (4096, 4096), torch.nn.functional.linear, dynamic)
        return {"model": model, "x": torch.randn(256, 4096), "no_grad": torch.no_grad}

    return set_up


def _float_linear(torch: ModuleType) -> Names:
    layer = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.ReLU())
    return {
        "model": torch.compile(layer.eval()),
        "x": torch.randn(256, 4096),
        "no_grad": torch.no_grad,
    }


def _conv(groups: int = 1) -> Callable[[ModuleType], Names]:
    def set_up(torch: ModuleType) -> Names:
        def apply(x: Any, w: Any, bias: Any) -> Any:
            return torch.nn.functional.conv2d(x, w, bias, 1, 1, 1, groups)

        model = program(torch, (64, 64 // groups, 3, 3), apply)
        return {"model": model, "x": torch.randn(8, 64, 56, 56), "no_grad": torch.no_grad}

    return set_up


def _float_conv(groups: int = 1) -> Callable[[ModuleType], Names]:
    def set_up(torch: ModuleType) -> Names:
        conv = torch.nn.Conv2d(64, 64, 3, 1, 1, groups=groups)
        return {
            "model": torch.compile(torch.nn.Sequential(conv, torch.nn.ReLU()).eval()),
            "x": torch.randn(8, 64, 56, 56),
            "no_grad": torch.no_grad,
        }

    return set_up


_CALL = "with no_grad(): model(x)"
INT8_LINEAR, FLOAT_LINEAR = "int8 linear 256 x 4096 -> 4096", "float32 linear 256 x 4096 -> 4096"
INT8_CONV, FLOAT_CONV = "int8 conv 8x64x56x56, 3x3 to 64", "float32 conv 8x64x56x56, 3x3 to 64"
INT8_DEPTHWISE = "int8 depthwise conv 8x64x56x56, 3x3"
FLOAT_DEPTHWISE = "float32 depthwise conv 8x64x56x56, 3x3"
QUANT_CASES: tuple[Case, ...] = (
    Case(INT8_LINEAR, _CALL, _linear(), 1.1),
    Case("int8 linear 256 x 4096 -> 4096, dynamic", _CALL, _linear(dynamic=True), 1.1),
    Case(INT8_CONV, _CALL, _conv(), 1.1),
    Case(INT8_DEPTHWISE, _CALL, _conv(groups=64), 1.1),
    Case(FLOAT_LINEAR, _CALL, _float_linear, 1.1),
    Case(FLOAT_CONV, _CALL, _float_conv(), 1.1),
    Case(FLOAT_DEPTHWISE, _CALL, _float_conv(groups=64), 1.1),
)
