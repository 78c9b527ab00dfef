"""Networks and how tests quantize them."""

from __future__ import annotations

import math
import warnings
from typing import Any

import argand_aten as aten
import argand_nn as nn
import argand_nn.functional as F
from argand_c10 import Module, Tensor, manual_seed
from argand_export import ExportedProgram, export
from argand_quant import (
    ConvertedProgram,
    X86InductorQuantizer,
    convert_pt2e,
    get_default_x86_inductor_quantization_config,
    prepare_pt2e,
)


class Mixed(Module):
    """Convolutions with and without what they fuse with, joined by all that integers may pass through."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2)
        self.scores = nn.Linear(128, 10)
        self.table = nn.Embedding(10, 128)

    def forward(self, x: Tensor, i: Tensor) -> Any:
        x = self.pool(F.relu(self.norm1(self.conv1(x))))
        y = F.relu(self.norm2(self.conv2(x)) + x)
        y = aten.cat([y, x], 1)[:, :8]
        return self.scores(y.flatten(1)), F.linear(self.table(i), self.scores.weight)


def mixed_inputs() -> Any:
    return aten.randn(2, 1, 8, 8), aten.randint(0, 10, (2, 4))


def mixed() -> Mixed:
    """With statistics that are not those of the start."""
    manual_seed(0)
    module = Mixed()
    for _ in range(3):
        module(*mixed_inputs())
    return module.eval()


def default_quantizer(**config: bool) -> X86InductorQuantizer:
    return X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config(**config))


def quantized(module: Module | ExportedProgram, calls: list[Any], quantizer: Any) -> Any:
    """Calibrated and converted; warnings of slow layers aside."""
    program = module if isinstance(module, ExportedProgram) else export(module, calls[0])
    prepared = prepare_pt2e(program, quantizer)
    for call in calls:
        prepared(*call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converted: ConvertedProgram = convert_pt2e(prepared)
    return converted


def noise_ratio(got: Tensor, wanted: Tensor) -> float:
    """Signal to noise in dB; infinite where both are equal."""
    noise, signal = float(((got - wanted) ** 2).sum()), float((wanted**2).sum())
    return 10 * math.log10(signal / noise) if noise else math.inf


def operators(program: ExportedProgram) -> list[str]:
    """What the graph calls, in order."""
    return [
        getattr(n.target, "name", "getitem") for n in program.graph.nodes if n.op == "call_function"
    ]
