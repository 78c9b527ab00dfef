"""Elementwise graphs and their gradients have eager's bits at every length and dtype."""

from __future__ import annotations

from typing import Any

import compile_harness as harness
import numpy as np
import pytest

import argand as torch
import argand.nn.functional as F

DTYPES = ["float32", "float64", "bfloat16", "float16"]


def arithmetic(a: Any, b: Any) -> Any:
    return (a + b) * a / (b.abs() + 0.5) - 2 * b


def activation(a: Any, b: Any) -> Any:
    return F.gelu(a) * torch.sigmoid(b) + F.silu(a - b) - F.softplus(b)


def transcendental(a: Any, b: Any) -> Any:
    return (
        torch.exp(-a * a)
        + torch.log1p(b.abs()) * torch.tanh(a)
        + torch.erf(b)
        - torch.sin(a) * torch.cos(b)
    )


def selection(a: Any, b: Any) -> Any:
    return torch.where(a > b, a.relu(), b.clamp(-0.5, 0.5)) + torch.maximum(a, b) * (a == b)


def numbers(a: Any, b: Any) -> Any:
    """Factors, divisors and weights that 16-bit floats do not hold."""
    scaled = torch.lerp(torch.lerp(0.1 * a, b / 1.3456, 0.7), a, torch.tensor(0.3)) * torch.tensor(
        257
    )
    scaled = torch.sub(scaled, b, alpha=1.3456)
    return scaled - 0.3 / (b.abs() + 0.1) + torch.tensor(1.1) * a.div(0.77, rounding_mode="floor")


FUNCTIONS = [arithmetic, activation, transcendental, selection, numbers]
SHAPES = [(1, 1), (130, 3), (3, 257), (2, 3, 5)]


def operands(n: int, dtype: str) -> list[torch.Tensor]:
    rng = np.random.default_rng(n)
    found = []
    for _ in range(2):
        values = rng.standard_normal(n) * 2
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 88.0, -120.0])
        values[rng.random(n) < 0.1] = rng.choice(special)
        found.append(torch.from_numpy(values).to(getattr(torch, dtype)).requires_grad_())
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_length(function: Any, dtype: str) -> None:
    torch.compiler.reset()
    compiled = torch.compile(function, dynamic=True)
    # Sizes 0 and 1 are never symbolic, and are compiled alone: once for each function and each dtype.
    alone = FUNCTIONS.index(function) % len(DTYPES) == DTYPES.index(dtype)
    with torch.compiler.collect_records() as records:
        for n in range(0 if alone else 2, 131):
            want = harness.run_once(function, tuple(operands(n, dtype)), 0, True)
            got = harness.run_once(compiled, tuple(operands(n, dtype)), 0, True)
            for name in ("result", "gradients"):
                harness.compare(want[name], got[name], f"length {n}: {name}", None)
    assert not [r for r in records if r.kind in ("graph_break", "fallback")]
    assert sum(r.kind == "recompile" for r in records) <= (3 if alone else 0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_strided_and_broadcast_operands(function: Any, shape: tuple[int, ...]) -> None:
    """With one kind of other operand a case, so that each function and each shape meets all three."""
    torch.compiler.reset()
    torch.manual_seed(3)
    base = torch.randn(*reversed(shape))
    others = (torch.randn(shape[-1]), torch.randn(*shape[:-1], 1), torch.randn(()))
    other = others[(FUNCTIONS.index(function) + SHAPES.index(shape)) % len(others)]
    args = (base.permute(*reversed(range(base.ndim))), other)
    harness.compare(function(*args), torch.compile(function)(*args), "result", None)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "uint8"])
def test_results_that_pass_by_the_caches(dtype: str) -> None:
    """From 16 MB on results are written past the caches; those of narrow dtypes fill parts of vectors."""
    kind = getattr(torch, dtype)
    n = (16 << 20) // torch.empty(0, dtype=kind).element_size() + 5
    x = (torch.arange(n) % 251).to(kind)
    compiled = torch.compile(lambda t: (t + t, t > 3))
    total, mask = compiled(x)
    assert torch.equal(total, x + x) and torch.equal(mask, x > 3)


def test_a_complex_number_without_dimensions() -> None:
    """Its sizes are no sizes, in the rule of the view that makes it, too."""
    torch.compiler.reset()
    args = (torch.tensor(1.5).requires_grad_(), torch.tensor(-2.0).requires_grad_())
    f = torch.compile(torch.complex, fullgraph=True)
    got = f(*args)
    assert got.shape == () and got.item() == 1.5 - 2j
    got.backward(torch.tensor(3 + 4j))
    assert [a.grad.item() for a in args] == [3.0, 4.0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_gradients_of_numbers_without_dimensions(dtype: str) -> None:
    """A number beside a 0-d tensor has no dtype of its own in derivatives either."""

    def f(a: Any, b: Any) -> Any:
        return torch.lerp(a, b, 0.4), a * 0.3, b / 0.7, 1.1 * (a * b)

    torch.compiler.reset()
    rng = np.random.default_rng(0)
    for compiled in [torch.compile(f, backend=b) for b in ("aot_eager", "inductor")]:
        for _ in range(5):
            values = torch.from_numpy(rng.standard_normal(2)).to(getattr(torch, dtype))
            found = []
            for g in (f, compiled):
                a, b = (v.clone().requires_grad_() for v in values)
                outputs = g(a, b)
                seeds = [values[0] * (k + 1) for k in range(4)]
                found.append(torch.autograd.grad(outputs, [a, b], seeds))
            for want, got in zip(*found, strict=True):
                assert want.dtype == got.dtype and want.item() == got.item()


NO_ELEMENTS = {
    "where": lambda x: torch.where(x > 0, 1e40, x),
    "clamp": lambda x: x.int().clamp(max=2**40),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1e40),
    "fill_": lambda x: x.clone().fill_(1e40),
    "full_like": lambda x: torch.full_like(x, 300, dtype=torch.uint8),
    "scatter": lambda x: x.scatter(0, torch.tensor([0]), 1e40),
    "index_fill": lambda x: x.index_fill(0, torch.tensor([0]), 1e40),
    "threshold": lambda x: F.threshold(x.half(), 0, 1e5),
    "lerp": lambda x: torch.lerp(x, x, 1e40),
    "pow": lambda x: x.int() ** -1,
    "alpha": lambda x: torch.add(x, x, alpha=1e40),
    "addmm": lambda x: torch.addmm(x, x[None], torch.ones(2, 2), alpha=1e40),
}


@pytest.mark.parametrize("name", NO_ELEMENTS)
def test_numbers_that_no_element_can_be_are_refused(name: str) -> None:
    function, x = NO_ELEMENTS[name], torch.tensor([1.0, -2.0])
    for call in (function, torch.compile(function)):
        with pytest.raises(RuntimeError, match="without overflow|none that is negative"):
            call(x)
