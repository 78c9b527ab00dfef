"""Ranks with different numbers of inputs, and optimizers whose state is divided."""

from __future__ import annotations

from typing import Any

import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_distributed as dist
import argand_nn as nn
from argand_distributed import testing as ranks
from argand_nn.optim import SGD, Adam


def network() -> nn.Module:
    c10.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))


def inputs(step: int, rank: int) -> c10.Tensor:
    return aten.sin(aten.arange(24.0) * (step + 1) + rank).reshape(6, 4)


def weights(module: nn.Module) -> list[float]:
    return [v for p in module.parameters() for v in p.detach().flatten().tolist()]


def uneven(rank: int, size: int, by_all: bool, zero: bool) -> tuple[list[float], list[float]]:
    """Rank r has 2 + r inputs. The weights, and those that one process computes from the same gradients."""
    model = dist.DistributedDataParallel(network(), broadcast_buffers=True)
    alone = [network() for _ in range(size)]
    if zero:
        optimizer: Any = dist.ZeroRedundancyOptimizer(model.parameters(), SGD, lr=0.1)
    else:
        optimizer = SGD(model.parameters(), lr=0.1)
    joined = [model, optimizer] if zero else [model]
    with dist.Join(joined, divide_by_initial_world_size=by_all):
        for step in range(2 + rank):
            optimizer.zero_grad()
            model(inputs(step, rank)).sum().backward()
            optimizer.step()
    for step in range(1 + size):  # what should have come out
        active = [r for r in range(size) if step < 2 + r]
        root = active[-1]  # whose buffers all begin with
        for r in active:
            for mine, given in zip(alone[r].buffers(), alone[root].buffers(), strict=True):
                mine.copy_(given)
            alone[r].zero_grad()
            alone[r](inputs(step, r)).sum().backward()
        divisor = size if by_all else len(active)
        for members in zip(*(m.parameters() for m in alone), strict=True):
            mean = sum(members[r].grad for r in active) / divisor
            for p in members:
                p.data.sub_(mean * 0.1)
    return weights(model), weights(alone[0])


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("by_all", [True, False])
def test_ranks_without_inputs_take_part(by_all: bool, zero: bool) -> None:
    for got, expected in ranks.run(3, uneven, by_all, zero):
        assert max(abs(a - b) for a, b in zip(got, expected, strict=True)) < 1e-5


def early(rank: int, size: int) -> int:
    model = dist.DistributedDataParallel(nn.Linear(4, 1))
    steps = 0
    with (
        pytest.raises(RuntimeError, match="Join: a rank has no inputs left"),
        model.join(throw_on_early_termination=True),
    ):
        for step in range(2 + rank):
            model(inputs(step, rank)).sum().backward()
            steps += 1
    model(inputs(0, rank)).sum().backward()  # works on
    with model.join(enable=False):
        model(inputs(0, rank)).sum().backward()
    return steps


def test_all_end_when_one_does() -> None:
    assert ranks.run(2, early) == [2, 2]


def divided(rank: int, size: int) -> None:
    """The same steps and the same state as an optimizer that has all of it."""
    model = dist.DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
    whole = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    whole.load_state_dict(model.module.state_dict())
    first, later = list(model.parameters())[:2], list(model.parameters())[2:]
    optimizer = dist.ZeroRedundancyOptimizer([{"params": first, "lr": 0.02}], Adam, lr=0.01)
    optimizer.add_param_group({"params": later})
    own = list(whole.parameters())
    expected = Adam([{"params": own[:2], "lr": 0.02}, {"params": own[2:]}], lr=0.01)
    with pytest.raises(RuntimeError, match="consolidate_state_dict"):
        optimizer.state_dict()

    def steps(given: Any, numbers: range) -> None:
        for step in numbers:
            for o in (given, expected):
                o.param_groups[1]["lr"] = 0.01 / (step + 1)  # as a scheduler
                o.zero_grad()
            model(inputs(step, 0)).pow(2).sum().backward()
            whole(inputs(step, 0)).pow(2).sum().backward()
            given.step()
            expected.step()

    steps(optimizer, range(3))
    held = sum(p.numel() for p in optimizer.optim.state)
    assert 0 < held < sum(p.numel() for p in own)
    assert aten.allclose(c10.tensor(weights(model)), c10.tensor(weights(whole)), atol=1e-6)
    optimizer.consolidate_state_dict(to=1)
    given: list[Any] = [optimizer.state_dict() if rank == 1 else None]
    dist.broadcast_object_list(given, src=1)
    wanted = expected.state_dict()
    assert given[0]["param_groups"] == wanted["param_groups"]
    for number, state in wanted["state"].items():
        assert aten.allclose(given[0]["state"][number]["exp_avg"], state["exp_avg"], atol=1e-6)
    again = dist.ZeroRedundancyOptimizer([{"params": first}, {"params": later}], Adam, lr=1.0)
    again.load_state_dict(given[0])
    steps(again, range(3, 5))
    assert aten.allclose(c10.tensor(weights(model)), c10.tensor(weights(whole)), atol=1e-6)


def test_divided_state_gives_the_same_steps() -> None:
    ranks.run(2, divided)
