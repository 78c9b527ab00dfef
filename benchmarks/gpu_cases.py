"""Programs on a GPU whose steady speed is measured, as in `cases.py`: eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.cases import MILLION, Case, Names

DEVICE = "cuda"
ROWS = (4, 1024, 4096)


def _vectors(count: int, names: str) -> Callable[[ModuleType], Names]:
    return lambda torch: {name: torch.randn(count, device=DEVICE) for name in names}


def _matrix(rows: int, columns: int) -> Callable[[ModuleType], Names]:
    return lambda torch: {"x": torch.randn(rows, columns, device=DEVICE)}


def _mask(*shape: int) -> Callable[[ModuleType], Names]:
    return lambda torch: {"x": torch.randn(*shape, device=DEVICE) > 0}


def _compiled(
    function: Callable[[Any], Callable[..., Any]], make: Callable[[ModuleType], Names]
) -> Callable[[ModuleType], Names]:
    """Set-up of `f(*values)`: a function of the library, compiled, and its tensors."""

    def set_up(torch: ModuleType) -> Names:
        return {"f": torch.compile(function(torch)), "values": tuple(make(torch).values())}

    return set_up


def _rows(dtype: str, weighted: bool = False) -> Callable[[ModuleType], Names]:
    def make(torch: ModuleType) -> Names:
        kind = getattr(torch, dtype)
        names = {"x": torch.randn(*ROWS, device=DEVICE).to(kind)}
        if weighted:
            for name in ("weight", "bias"):
                names[name] = torch.randn(ROWS[-1], device=DEVICE).to(kind)
        return names

    return make


def _softmax(torch: Any) -> Callable[..., Any]:
    return lambda x: torch.softmax(x, -1)


def _layer_norm(torch: Any) -> Callable[..., Any]:
    return lambda x, w, b: torch.nn.functional.layer_norm(x, (ROWS[-1],), w, b)


def _gelu(torch: Any) -> Callable[..., Any]:
    return lambda x: torch.nn.functional.gelu(x)


def _fused(torch: Any) -> Callable[..., Any]:
    return lambda x, y, z: torch.relu((x + y) * z)


def _add_relu(torch: Any) -> Callable[..., Any]:
    return lambda x, y: torch.relu(x + y)


def _bfloat16(make: Callable[[ModuleType], Names]) -> Callable[[ModuleType], Names]:
    return lambda torch: {name: x.to(torch.bfloat16) for name, x in make(torch).items()}


def _square(size: int, dtype: str) -> Callable[[ModuleType], Names]:
    def set_up(torch: ModuleType) -> Names:
        kind = getattr(torch, dtype)
        return {name: torch.randn(size, size, device=DEVICE).to(kind) for name in "xy"}

    return set_up


def _attention(torch: ModuleType) -> Names:
    def part() -> Any:
        return torch.randn(16, 12, 1024, 64, device=DEVICE).to(torch.bfloat16).requires_grad_()

    return {
        "F": torch.nn.functional,
        **{name: part() for name in "qkv"},
        "seed": torch.randn(16, 12, 1024, 64, device=DEVICE).to(torch.bfloat16),
        "no_grad": torch.no_grad,
    }


def _gpu(name: str, statement: str, set_up: Callable[[ModuleType], Names], target: float) -> Case:
    return Case(f"gpu {name}", statement, set_up, target, device=DEVICE)


_ATTENTION = "F.scaled_dot_product_attention(q, k, v, is_causal=True)"

GPU_CASES: tuple[Case, ...] = (
    _gpu("tiny add", "x + y", _vectors(16, "xy"), 0.8),
    _gpu("add of 64 M", "x + y", _vectors(64 * MILLION, "xy"), 1.0),
    _gpu("sum of 64 M", "x.sum()", _vectors(64 * MILLION, "x"), 1.1),
    _gpu("sum of 64 M, bfloat16", "x.sum()", _bfloat16(_vectors(64 * MILLION, "x")), 1.1),
    _gpu("sum of 8192 columns", "x.sum(0)", _matrix(8192, 8192), 1.1),
    _gpu("sum of 8192 columns, bfloat16", "x.sum(0)", _bfloat16(_matrix(8192, 8192)), 1.1),
    _gpu("cumsum of 16 M", "x.cumsum(0)", _vectors(16 * MILLION, "x"), 1.1),
    _gpu("cumsum of 8192 rows", "x.cumsum(1)", _matrix(8192, 8192), 1.1),
    _gpu("8192 square plus its transpose", "x + x.T", _matrix(8192, 8192), 1.1),
    _gpu("sort of 16 M", "x.sort()", _vectors(16 * MILLION, "x"), 1.1),
    _gpu("sort of 4096 rows of 4096", "x.sort()", _matrix(4096, 4096), 1.1),
    _gpu("topk 50 of 4096 rows of 4096", "x.topk(50)", _matrix(4096, 4096), 1.1),
    _gpu("nonzero of 16 M", "x.nonzero()", _mask(16 * MILLION), 1.1),
    _gpu("argmax of 8192 rows", "x.argmax(1)", _matrix(8192, 8192), 1.1),
    *(
        _gpu(f"{size} GEMM, {dtype}", "x @ y", _square(size, dtype), 1.02)
        for size, dtype in ((8192, "bfloat16"), (4096, "bfloat16"), (4096, "float32"))
    ),
    _gpu("attention", f"with no_grad(): {_ATTENTION}", _attention, 1.2),
    _gpu("attention, forward and backward", f"{_ATTENTION}.backward(seed)", _attention, 1.2),
    _gpu(
        "compiled add, relu of 32x128",
        "f(*values)",
        _compiled(_add_relu, lambda torch: {n: torch.randn(32, 128, device=DEVICE) for n in "xy"}),
        0.3,
    ),
    _gpu(
        "compiled add, mul, relu of 64 M",
        "f(*values)",
        _compiled(_fused, _vectors(64 * MILLION, "xyz")),
        1.0,
    ),
    *(
        _gpu(
            f"compiled {name} of 4x1024x4096, {dtype}",
            "f(*values)",
            _compiled(function, _rows(dtype, name == "layer norm")),
            1.05,
        )
        for name, function in (
            ("softmax", _softmax),
            ("layer norm", _layer_norm),
            ("gelu", _gelu),
        )
        for dtype in ("float32", "bfloat16")
    ),
)
