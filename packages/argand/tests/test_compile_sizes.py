"""Programs that meet many sizes are compiled twice: for the first sizes, and for all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import argand as torch
from argand import nn
from argand.nn import functional as F
from argand_c10 import metrics, records


@pytest.fixture(autouse=True)
def fresh_compiler() -> Any:
    yield
    torch.compiler.reset()


def loss(x: Any) -> Any:
    y = x @ torch.ones(8, 5)
    return F.cross_entropy(y, torch.zeros(y.shape[0]).long())


def rotate(x: Any) -> Any:
    _, t, d = x.shape
    angle = (
        torch.arange(t).float()[:, None]
        * (1.0 / (10000 ** (torch.arange(0, d, 2).float() / d)))[None]
    )
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack(
        [even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()], -1
    ).flatten(-2)


def causal(x: Any) -> Any:
    t = x.shape[1]
    scores = x @ x.transpose(1, 2) / x.shape[-1] ** 0.5
    return scores.masked_fill(~torch.tril(torch.ones(t, t)).bool(), float("-inf")).softmax(-1) @ x


def windows(x: Any) -> Any:
    return F.pad(x, (1, 2)).unfold(1, 3, 1).mean(-1).reshape(x.shape[0], -1)


def standardize(x: Any) -> Any:
    return (x - x.mean(0)) / (x.var(0) + 1e-5).sqrt()


def halves(x: Any) -> Any:
    a, b = x.chunk(2, -1)
    return torch.cat([a * b, a], 1).sum(1) / x.shape[0]


def ends(x: Any) -> Any:
    return x[:, -1], x[:, : x.shape[1] // 2].sum(), x[-1]


def running(x: Any) -> Any:
    return x.cumsum(1).flip(1)[:, ::2].contiguous().view(-1)


def products(x: Any) -> Any:
    return torch.einsum("bij,bkj->bik", x, x).amax(-1)


def masked(x: Any) -> Any:
    y = x.clone()
    y[y > 0.5] = 0.0
    y[:, 1:] += x[:, :-1]
    return y


def network() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, stride=2, padding=1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5),
    )  # fmt: skip


PROGRAMS: list[tuple[Any, Callable[[int], tuple[int, ...]]]] = [
    (loss, lambda n: (n + 2, 8)), (rotate, lambda n: (n + 1, n + 5, 8)), (causal, lambda n: (n + 2, n + 3, 4)),
    (windows, lambda n: (n + 2, n + 6)), (standardize, lambda n: (n + 4, 7)), (halves, lambda n: (n + 2, 8)),
    (ends, lambda n: (n + 2, n + 6)), (running, lambda n: (n + 2, n + 6)), (products, lambda n: (n + 2, n + 6, 5)),
    (masked, lambda n: (n + 2, n + 3)), (network, lambda n: (n, 3, 10 + 2 * n, 12 + n)),
]  # fmt: skip


def outcome(f: Any, x: Any) -> list[Any]:
    found = f(x)
    results = list(found) if isinstance(found, tuple) else [found]
    sum(r.sum() for r in results).backward()
    gradient, x.grad = x.grad, None
    return [*results, gradient]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(("program", "shape"), PROGRAMS, ids=[p.__name__ for p, _ in PROGRAMS])
def test_two_compilations(
    program: Any, shape: Callable[[int], tuple[int, ...]], backend: str
) -> None:
    plain, other = (program(), program()) if program is network else (program, program)
    compiled = torch.compile(other, backend=backend)
    metrics.reset()
    with records.collect() as found:
        for n in (2, 3, 4, 5, 7, 9):
            x = torch.randn(shape(n)).requires_grad_()
            for got, want in zip(outcome(compiled, x), outcome(plain, x), strict=True):
                assert (
                    got.shape == want.shape
                    and got.stride() == want.stride()
                    and got.dtype == want.dtype
                )
                torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    breaks = [str(r) for r in found if r.kind in ("graph_break", "fallback")]
    assert not breaks
    assert metrics.counters().get("graphs", 0) <= 2, [
        str(r) for r in found if r.kind == "recompile"
    ]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_gradient_that_needs_a_size(backend: str) -> None:
    """A derivative that loops over a dimension is right at other sizes too."""
    compiled = torch.compile(lambda x: x.cumprod(0), backend=backend, dynamic=True)
    for n in (3, 4, 5):
        x = (torch.rand(n, 2) + 0.5).requires_grad_()
        for got, want in zip(outcome(compiled, x), outcome(lambda x: x.cumprod(0), x), strict=True):
            torch.testing.assert_close(got, want)
