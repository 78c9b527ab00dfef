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

    `group`: cases of one group are judged by the geometric mean of their ratios.
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
    group: str = ""


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
            "linear": torch.nn.functional.linear,
            "seed": torch.ones(4, 4),
            "view_seed": torch.ones(16),
            "row_seed": torch.ones(4),
        }

    return set_up


def _tiny_cases() -> list[Case]:
    cases = []
    for name, call in {
        "add": "x + y",
        "mul": "x * y",
        "view": "x.view(16)",
        "indexing": "x[1]",
        "linear": "linear(x, y)",
        "linear layer": "layer(x)",
    }.items():
        cases.append(Case(f"tiny {name}", call, _tiny(False), 0.4))
        cases.append(Case(f"tiny {name}, with gradient", call, _tiny(True), 0.4))
        seed = {"view": "view_seed", "indexing": "row_seed"}.get(name, "seed")
        backward = f"({call}).backward({seed})"
        cases.append(Case(f"tiny {name}, forward and backward", backward, _tiny(True), 0.4))
    cases.append(Case("tiny add_", "x.add_(y)", _tiny(False), 0.4))
    return [*cases, Case("MLP of 12 tiny layers, backward", "step()", _tiny_mlp, 0.5)]


def _tiny_mlp(torch: ModuleType) -> Names:
    """Overhead alone: gradients of 24 parameters of 8 x 8 and 8 elements."""
    nn: Any = torch.nn
    layers = [layer for _ in range(12) for layer in (nn.Linear(8, 8), nn.Tanh())]
    network, x = nn.Sequential(*layers), torch.randn(4, 8)
    loss = network(x).sum()
    return {"step": lambda: loss.backward(retain_graph=True)}


def _rows(rows: int, dtype: str) -> Callable[[ModuleType], Names]:
    """`rows` rows of 1,024 elements, and what the calls below read with them."""

    def set_up(torch: ModuleType) -> Names:
        as_dtype = {"dtype": getattr(torch, dtype)}
        return {
            "torch": torch,
            "F": torch.nn.functional,
            "x": torch.randn(rows, 1024).to(**as_dtype),
            "y": torch.randn(rows, 1024).to(**as_dtype),
            "weight": torch.randn(1024).to(**as_dtype),
            "bias": torch.randn(1024).to(**as_dtype),
            "table": torch.randn(4096, 1024).to(**as_dtype),
            "index": torch.randint(0, 4096, (rows,)),
        }

    return set_up


def _bandwidth_cases() -> list[Case]:
    calls = {
        "add": "x + y",
        "gelu": "F.gelu(x)",
        "softmax": "F.softmax(x, dim=-1)",
        "layer_norm": "F.layer_norm(x, (1024,), weight, bias)",
        "sum": "x.sum()",
        "transpose and copy": "x.t().contiguous()",
        "cat": "torch.cat([x, y])",
        "embedding": "F.embedding(index, table)",
    }
    cases = []
    for name, call in calls.items():
        for rows in (1024, 16384):
            for dtype, size in {"float32": 4, "bfloat16": 2}.items():
                # An addition reads two tensors and writes one: what a copy of one and a half times a tensor moves.
                compared = name == "add" and rows == 16384
                case = Case(
                    f"{name} of {rows // 1024} M, {dtype}",
                    call,
                    _rows(rows, dtype),
                    0.8,
                    traffic=3 * size * rows * 1024 if compared else 0,
                    bandwidth_target=0.85 if compared else 0.0,
                )
                cases.append(case)
    return cases


def _gemm(n: int, dtype: str, target: float) -> Case:
    def set_up(torch: ModuleType) -> Names:
        return {name: torch.randn(n, n).to(dtype=getattr(torch, dtype)) for name in "xy"}

    return Case(f"gemm {n}, {dtype}", "x @ y", set_up, target)


# Convolutions of ResNet-50 at 224 x 224: channels in and out, size of the kernel, stride, input's height and width.
_RESNET50 = (
    (3, 64, 7, 2, 224),
    (64, 64, 1, 1, 56),
    (64, 64, 3, 1, 56),
    (64, 256, 1, 1, 56),
    (256, 64, 1, 1, 56),
    (256, 128, 1, 1, 56),
    (128, 128, 3, 2, 56),
    (256, 512, 1, 2, 56),
    (128, 512, 1, 1, 28),
    (512, 128, 1, 1, 28),
    (128, 128, 3, 1, 28),
    (512, 256, 1, 1, 28),
    (256, 256, 3, 2, 28),
    (512, 1024, 1, 2, 28),
    (256, 1024, 1, 1, 14),
    (1024, 256, 1, 1, 14),
    (256, 256, 3, 1, 14),
    (1024, 512, 1, 1, 14),
    (512, 512, 3, 2, 14),
    (1024, 2048, 1, 2, 14),
    (512, 2048, 1, 1, 7),
    (2048, 512, 1, 1, 7),
    (512, 512, 3, 1, 7),
)


def _conv(
    inputs: int, outputs: int, kernel: int, stride: int, size: int, requires_grad: bool = False
) -> Case:
    out = (size - 1) // stride + 1

    def set_up(torch: ModuleType) -> Names:
        return {
            "conv2d": torch.nn.functional.conv2d,
            "x": torch.randn(8, inputs, size, size).requires_grad_(requires_grad),
            "weight": torch.randn(outputs, inputs, kernel, kernel).requires_grad_(requires_grad),
            "seed": torch.ones(8, outputs, out, out),
        }

    call = f"conv2d(x, weight, stride={stride}, padding={kernel // 2})"
    name = f"conv2d {inputs}x{size}x{size} to {outputs}, {kernel}x{kernel} by {stride}"
    if requires_grad:
        return Case(f"{name}, with backward", f"{call}.backward(seed)", set_up, 1.2)
    return Case(name, call, set_up, 1.05, group="convolutions of ResNet-50")


def _attention(requires_grad: bool) -> Callable[[ModuleType], Names]:
    def set_up(torch: ModuleType) -> Names:
        q, k, v = (torch.randn(8, 8, 1024, 64).requires_grad_(requires_grad) for _ in range(3))
        seed = torch.ones(8, 8, 1024, 64)
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
        cases.append(Case(f"{name}, forward", call, _attention(False), 0.9))
        backward = f"{call}.backward(seed)"
        cases.append(Case(f"{name}, forward and backward", backward, _attention(True), 0.9))
    return cases


def _optimizer(torch: ModuleType) -> Names:
    """A step of AdamW over 10 M parameters in 100 tensors."""
    parameters = [torch.randn(100_000).requires_grad_() for _ in range(100)]
    for parameter in parameters:
        parameter.grad = torch.randn(100_000)
    return {"step": torch.optim.AdamW(parameters, fused=True).step}


CASES: tuple[Case, ...] = (
    *_tiny_cases(),
    *_bandwidth_cases(),
    *(_gemm(n, "float32", 0.5) for n in (512, 1024, 2048, 4096)),
    *(_gemm(n, "bfloat16", 1.3) for n in (512, 1024, 2048, 4096)),
    *(_conv(*shape) for shape in _RESNET50),
    _conv(64, 64, 3, 1, 56, requires_grad=True),
    *_attention_cases(),
    Case("AdamW step of 10 M parameters, fused", "step()", _optimizer, 0.8),
    Case("GPT training step", "step()", lambda torch: {"step": build_training_step(torch)}, 0.8),
)
