"""Checkpoints inside of compiled code: what backward computes again is what forward has computed."""

from __future__ import annotations

from typing import Any

import pytest

import argand as torch
import argand.nn as nn
from argand.utils.checkpoint import checkpoint

BACKENDS = ["eager", "aot_eager", "inductor"]


@pytest.fixture(autouse=True)
def fresh_compiler() -> Any:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def block() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 4))


def gradient(f: Any, rows: int) -> Any:
    x = torch.arange(4.0 * rows).reshape(rows, 4).requires_grad_()
    torch.manual_seed(7)
    y = f(x)
    y.backward()
    return y.detach(), x.grad


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_checkpoint_inside(backend: str, reentrant: bool) -> None:
    part = block()

    def f(x: Any) -> Any:
        return (checkpoint(part, x * 2, use_reentrant=reentrant) + 1).sum()

    compiled = torch.compile(f, backend=backend)
    with torch.compiler.collect_records() as records:
        for rows in (3, 5, 3):
            for got, want in zip(gradient(compiled, rows), gradient(f, rows), strict=True):
                assert torch.allclose(got, want, rtol=1e-5)
    assert "GB0024" in [r.code for r in records]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_function_is_checkpointed(backend: str) -> None:
    part = block()
    compiled = torch.compile(part, backend=backend)
    for rows in (3, 5):
        found = [
            gradient(lambda x, g=g: checkpoint(g, x, use_reentrant=False).sum(), rows)
            for g in (compiled, part)
        ]
        for got, want in zip(*found, strict=True):
            assert torch.allclose(got, want, rtol=1e-5)
