"""Several processes by the front-end's names: collectives in compiled programs, compiled data-parallel training."""

from __future__ import annotations

import argand as torch
import argand.distributed as dist
import argand.nn as nn
from argand.distributed import functional as fc
from argand.nn.parallel import DistributedDataParallel
from argand_distributed import testing as ranks


def graphs(rank: int, size: int) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = fc.all_reduce(x * 2, "SUM")
        return (fc.all_gather_tensor(y + x) * y.sum()).sum()

    x = torch.arange(6.0).reshape(2, 3) + rank
    x.requires_grad_()
    expected = program(x)
    expected.backward()
    assert x.grad is not None
    gradient, x.grad = x.grad, None
    compiled = torch.compile(program, fullgraph=True)
    for _ in range(2):
        x.grad = None
        got = compiled(x)
        got.backward()
        assert torch.equal(got, expected)
        assert x.grad is not None
        assert torch.allclose(x.grad, gradient)


def test_collectives_compile_and_derive() -> None:
    ranks.run(2, graphs)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 1)
    )


def train(rank: int, size: int, compiled: str) -> list[float]:
    model = DistributedDataParallel(network(), bucket_cap_mb=0.001)
    forward = model
    if compiled == "outside":
        forward = torch.compile(model)
    elif compiled == "inside":
        model.module = torch.compile(model.module)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(6):
        x = torch.sin(torch.arange(64.0) * (step + 1)).reshape(8, 8)[rank::size]
        optimizer.zero_grad()
        loss = (forward(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        losses.append(mean.item())
    return losses


def test_compiled_data_parallel_training_equals_eager() -> None:
    expected = ranks.run(2, train, "")
    for how in ("outside", "inside"):
        for got in ranks.run(2, train, how):
            assert max(abs(a - b) / a for a, b in zip(got, expected[0], strict=True)) < 1e-6
