"""What is measured: a statement over names that a set-up function makes, for any module that plays `torch`.

A case's target is the largest allowed ratio of our median time to the peer's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from benchmarks.gpt import build_training_step

Names = dict[str, Any]

MILLION = 1 << 20


@dataclass(frozen=True)
class Case:
    """One measurement.

    `traffic`: bytes that a call must move, where it is compared with a copy's bandwidth. `device`: where the call's work
    is queued, unless it is done when the call returns.
    """

    name: str
    statement: str
    set_up: Callable[[ModuleType], Names]
    target: float
    traffic: int = 0
    bandwidth_target: float = 0.0
    device: str = "cpu"


def _tiny(requires_grad: bool) -> Callable[[ModuleType], Names]:
    def set_up(torch: ModuleType) -> Names:
        x = torch.randn(4, 4).requires_grad_(requires_grad)
        y = torch.randn(4, 4).requires_grad_(requires_grad)
        layer = torch.nn.Linear(4, 4)
        for parameter in layer.parameters():
            parameter.requires_grad_(requires_grad)
        return {
            "x": x,
            "y": y,
            "layer": layer,
            "seed": torch.ones(4, 4),
            "view_seed": torch.ones(16),
        }

    return set_up


def _tiny_cases() -> list[Case]:
    cases = []
    for name, call in {
        "add": "x + y",
        "mul": "x * y",
        "view": "x.view(16)",
        "linear layer": "layer(x)",
    }.items():
        cases.append(Case(f"tiny {name}", call, _tiny(False), 0.6))
        cases.append(Case(f"tiny {name}, with gradient", call, _tiny(True), 0.6))
        seed = "view_seed" if name == "view" else "seed"
        backward = f"({call}).backward({seed})"
        cases.append(Case(f"tiny {name}, forward and backward", backward, _tiny(True), 0.6))
    return cases


def _vectors(n: int) -> Callable[[ModuleType], Names]:
    return lambda torch: {"x": torch.randn(n), "y": torch.randn(n)}


def _rows(torch: ModuleType) -> Names:
    return {
        "x": torch.randn(1024, 1024),
        "F": torch.nn.functional,
        "weight": torch.randn(1024),
        "bias": torch.randn(1024),
    }


def _million_cases() -> list[Case]:
    calls = {
        "gelu": "F.gelu(x)",
        "softmax": "F.softmax(x, dim=-1)",
        "layer_norm": "F.layer_norm(x, (1024,), weight, bias)",
        "sum": "x.sum()",
    }
    return [Case(f"{name} of 1 M", call, _rows, 1.0) for name, call in calls.items()]


def _gemm(n: int) -> Case:
    def set_up(torch: ModuleType) -> Names:
        return {"x": torch.randn(n, n), "y": torch.randn(n, n)}

    return Case(f"gemm {n}", "x @ y", set_up, 0.6)


def _conv(requires_grad: bool) -> Callable[[ModuleType], Names]:
    def set_up(torch: ModuleType) -> Names:
        x = torch.randn(8, 64, 56, 56).requires_grad_(requires_grad)
        weight = torch.randn(64, 64, 3, 3).requires_grad_(requires_grad)
        seed = torch.ones(8, 64, 56, 56)
        return {"conv2d": torch.nn.functional.conv2d, "x": x, "weight": weight, "seed": seed}

    return set_up


def _attention(requires_grad: bool) -> Callable[[ModuleType], Names]:
    def set_up(torch: ModuleType) -> Names:
        q, k, v = (torch.randn(8, 4, 256, 64).requires_grad_(requires_grad) for _ in range(3))
        seed = torch.ones(8, 4, 256, 64)
        return {
            "attention": torch.nn.functional.scaled_dot_product_attention,
            "q": q,
            "k": k,
            "v": v,
            "seed": seed,
        }

    return set_up


def _attention_cases() -> list[Case]:
    cases = []
    for name, option in {"attention": "", "causal attention": ", is_causal=True"}.items():
        call = f"attention(q, k, v{option})"
        cases.append(Case(f"{name}, forward", call, _attention(False), 1.1))
        backward = f"{call}.backward(seed)"
        cases.append(Case(f"{name}, forward and backward", backward, _attention(True), 1.1))
    return cases


# An addition reads two tensors and writes one: what a copy of one and a half times a tensor moves.
ADD_16M = Case(
    "add of 16 M",
    "x + y",
    _vectors(16 * MILLION),
    0.5,
    traffic=3 * 4 * 16 * MILLION,
    bandwidth_target=0.8,
)

CASES: tuple[Case, ...] = (
    *_tiny_cases(),
    ADD_16M,
    *_million_cases(),
    *(_gemm(n) for n in (512, 1024, 2048, 4096)),
    Case("conv2d 8x64x56x56 3x3", "conv2d(x, weight, padding=1)", _conv(False), 1.2),
    Case(
        "conv2d 8x64x56x56 3x3, forward and backward",
        "conv2d(x, weight, padding=1).backward(seed)",
        _conv(True),
        1.2,
    ),
    *_attention_cases(),
    Case("GPT training step", "step()", lambda torch: {"step": build_training_step(torch)}, 0.8),
)
