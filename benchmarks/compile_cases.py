"""Compiled programs whose steady speed is measured, as in `cases.py`."""

from __future__ import annotations

from types import ModuleType

from benchmarks.cases import Case, Names
from benchmarks.gpt import build_training_step
from benchmarks.resnet import build_resnet50


def _add_relu(torch: ModuleType) -> Names:
    f = torch.compile(lambda x, y: torch.relu(x + y))
    return {"f": f, "x": torch.randn(32, 128), "y": torch.randn(32, 128)}


def _fused(torch: ModuleType) -> Names:
    f = torch.compile(lambda x, y, z: torch.relu((x + y) * z))
    return {"f": f, **{name: torch.randn(4096, 4096) for name in "xyz"}}


def _resnet(torch: ModuleType) -> Names:
    model = torch.compile(build_resnet50(torch).eval())
    return {"model": model, "x": torch.randn(8, 3, 224, 224), "no_grad": torch.no_grad}


COMPILED_CASES: tuple[Case, ...] = (
    Case("compiled add, relu of 32x128", "f(x, y)", _add_relu, 0.4),
    Case("compiled add, mul, relu of 4096x4096", "f(x, y, z)", _fused, 0.6),
    Case(
        "compiled GPT training step",
        "step()",
        lambda torch: {"step": build_training_step(torch, compiled=True)},
        0.8,
    ),
    Case("compiled ResNet-50 inference, batch 8", "with no_grad(): model(x)", _resnet, 1.1),
)
