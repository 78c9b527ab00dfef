"""A training step with limited gradients: compiled it changes the parameters as eager execution does, to the bit.

The code generator sums a loss in another order than eager execution, so that whole steps run their graphs operator by operator.
"""

from __future__ import annotations

from typing import Any

import pytest
from compile_harness import same_bits

import argand as torch
from argand import nn
from argand_c10 import records


def by_norm(model: nn.Module) -> Any:
    return nn.utils.clip_grad_norm_(model.parameters(), 0.5)


def by_another_norm(model: nn.Module) -> Any:
    return nn.utils.clip_grad_norm_(model.parameters(), 0.25, norm_type=float("inf"))


def by_value(model: nn.Module) -> Any:
    return nn.utils.clip_grad_value_(model.parameters(), 0.1)


def train(clip: Any, compiled: str, dtype: Any) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3)).to(dtype)
    if dtype is not torch.float32:
        model[2].to(torch.float32)  # gradients of two dtypes
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step_optimizer = optimizer.step
    if compiled == "step and optimizer":
        step_optimizer = torch.compile(optimizer.step, backend="aot_eager")

    def step(x: torch.Tensor) -> Any:
        optimizer.zero_grad()
        hidden = model[1](model[0](x.to(dtype))).to(torch.float32)
        loss = model[2](hidden).square().sum()
        loss.backward()
        found = clip(model)
        step_optimizer()
        return loss.detach(), found

    run = step if compiled == "nothing" else torch.compile(step, backend="aot_eager")
    seen: list[torch.Tensor] = []
    for i in range(3):
        loss, norm = run(torch.randn(4, 6) * (i + 1))
        seen += [loss] if norm is None else [loss, norm]
        seen += [p.detach().clone() for p in model.parameters()]
        seen += [p.grad.clone() for p in model.parameters()]
    return seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("compiled", ["step", "step and optimizer"])
@pytest.mark.parametrize("clip", [by_norm, by_another_norm, by_value])
def test_a_step_that_limits_gradients(clip: Any, compiled: str, dtype: Any) -> None:
    with records.collect() as found:
        got = train(clip, compiled, dtype)
    assert not [r for r in found if r.kind == "fallback"]
    assert all(map(same_bits, train(clip, "nothing", dtype), got))


@pytest.mark.parametrize("clip", [by_norm, by_another_norm, by_value])
def test_limiting_alone_is_one_graph(clip: Any) -> None:
    model, twin = nn.Linear(3, 2), nn.Linear(3, 2)
    twin.load_state_dict(model.state_dict())
    for each in (model, twin):
        each(torch.ones(5, 3)).square().sum().backward()
    with records.collect() as found:
        got = torch.compile(clip, fullgraph=True)(model)
    want = clip(twin)
    assert not found and (want is got if want is None else same_bits(want, got))
    pairs = zip(twin.parameters(), model.parameters(), strict=True)
    assert all(same_bits(a.grad, b.grad) for a, b in pairs)
