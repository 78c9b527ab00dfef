"""Several processes by the front-end's names: collectives in compiled programs, compiled data-parallel training."""

from __future__ import annotations

import gc
import re
import time

import pytest

import argand as torch
import argand.distributed as dist
import argand.nn as nn
from argand.distributed import functional as fc
from argand.nn.parallel import DistributedDataParallel
from argand_c10 import agreement
from argand_c10.records import collect
from argand_distributed import testing as ranks


def test_names_of_the_front_end() -> None:
    from argand.distributed.algorithms.ddp_comm_hooks import default_hooks
    from argand.distributed.algorithms.join import Join
    from argand.distributed.device_mesh import init_device_mesh
    from argand.distributed.optim import ZeroRedundancyOptimizer

    assert default_hooks.fp16_compress_hook is dist.fp16_compress_hook
    assert Join is dist.Join
    assert init_device_mesh is dist.init_device_mesh
    assert ZeroRedundancyOptimizer is dist.ZeroRedundancyOptimizer


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


def differ(rank: int, size: int, more: bool) -> tuple[str, float]:
    """Rank 1 compiles another program: an error that names it, on both."""

    def program(x: torch.Tensor) -> torch.Tensor:
        y = fc.all_reduce(x, "SUM")
        if rank == 1:
            return fc.all_reduce(y, "MAX") if more else y
        return fc.all_gather_tensor(y)

    start = time.monotonic()
    try:
        torch.compile(program, fullgraph=True)(torch.ones(4))
        dist.barrier()
    except dist.DistBackendError as error:
        return str(error), time.monotonic() - start
    return "", 0.0


@pytest.mark.parametrize("more", [True, False])
def test_programs_that_differ_are_named(more: bool) -> None:
    for rank, (message, seconds) in enumerate(ranks.run(2, differ, more)):
        assert "would run different collectives, from call 2" in message, rank
        theirs = r"all_reduce\(float32\[4\], MAX\)" if more else "nothing more"
        assert re.search(f"rank 1: {theirs}", message)
        assert re.search(r"rank 0: all_gather\(float32\[4\]\) at test_distributed.py:", message)
        assert seconds < 30


def once_more(rank: int, size: int) -> list[dict[str, object]]:
    """A program that only one rank compiles again, and one that a rank runs without the compiler."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return fc.all_reduce(x * 2, "SUM")

    compiled = torch.compile(program)
    for n in (3, 3, 4, 5, 3):
        x = torch.ones(n, requires_grad=n == 5 and rank == 0)
        assert compiled(x).tolist() == [4.0] * n
    assert (program if rank else compiled)(torch.ones(2, 2)).sum().item() == 16.0
    return dist.flight_records()


def test_programs_may_differ_in_all_else() -> None:
    ranks.run(2, once_more)


def choose(rank: int, size: int) -> tuple[int, int]:
    """The rank that asks first finds out for all; one that fails leaves the others to themselves."""
    if rank == 0:
        found = agreement.decide("fastest", lambda: 7)
        with pytest.raises(ZeroDivisionError):
            agreement.decide("broken", lambda: 1 // 0)
        dist.barrier()
        return found, 0
    dist.barrier()
    return agreement.decide("fastest", lambda: 8), agreement.decide("broken", lambda: 9)


def test_one_rank_measures_for_all() -> None:
    assert ranks.run(2, choose) == [(7, 0), (7, 9)]
    assert agreement.decide("fastest", lambda: 8) == 8


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


class Tied(nn.Module):
    """One weight is used twice in the compiled part, another in it and outside of it; one gradient passes a hook."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(4)])
        self.shift = nn.Parameter(torch.randn(8, 16))
        self.layers[1].weight.register_hook(lambda grad: grad * 2)

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x)) + self.shift
        return self.layers[0](x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * self.layers[2].weight.sum()


def gradients(rank: int, size: int, compiled: bool, as_view: bool) -> list[list[float]]:
    """Of steps with one and two backwards, and with gradients that are zeros or none before."""
    network = Tied()
    if compiled:
        network.inner = torch.compile(network.inner, fullgraph=True)
    model = DistributedDataParallel(
        network, bucket_cap_mb=0.001, gradient_as_bucket_view=as_view, find_unused_parameters=True
    )
    found = []
    for step in range(4):
        model.zero_grad(set_to_none=step < 2)
        x = torch.sin(torch.arange(128.0) * (step + rank + 1)).reshape(8, 16)
        if step % 2:
            with model.no_sync():
                model(x.cos()).sum().backward()
        model(x).sum().backward()
        found.append([g for p in network.parameters() for g in p.grad.flatten().tolist()])
    return found


@pytest.mark.parametrize("as_view", [False, True])
def test_gradients_of_compiled_parts_equal_eager(as_view: bool) -> None:
    expected = ranks.run(2, gradients, False, as_view)
    found = ranks.run(2, gradients, True, as_view)
    assert found[0] == found[1]
    for got, want in zip(found[0], expected[0], strict=True):
        assert max(abs(a - b) for a, b in zip(got, want, strict=True)) < 1e-4


class Branches(nn.Module):
    """Uses one of two layers; one parameter is never used."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.last = nn.Linear(8, 2)
        self.never = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor, second: bool) -> torch.Tensor:
        return self.last(torch.tanh((self.second if second else self.first)(x)))


def partly_used(rank: int, size: int, mode: str, how: dict[str, bool]) -> list[list[float]]:
    """Gradients of steps, every other one of which has a backward that is not sent."""
    network = Branches()
    model = DistributedDataParallel(network, bucket_cap_mb=0.0002, **how)
    assert len(model._reducer.buckets) > 1
    forward = torch.compile(model, mode=mode) if mode else model
    found = []
    for step in range(4):
        second = "static_graph" not in how and (rank + step) % 3 == 0
        x = torch.sin(torch.arange(32.0) * (step + rank + 1)).reshape(4, 8)
        model.zero_grad()
        if step % 2:
            with model.no_sync():
                forward(x.cos(), second).sum().backward()
        forward(x, second).sum().backward()
        kept = [torch.zeros(1) if p.grad is None else p.grad for p in network.parameters()]
        found.append([g for grad in kept for g in grad.flatten().tolist()])
    return found


@pytest.mark.parametrize(
    ("how", "mode"),
    [({"find_unused_parameters": True}, "reduce-overhead"), ({"static_graph": True}, "default")],
    ids=str,
)
def test_compiled_models_with_unused_parameters_equal_eager(
    how: dict[str, bool], mode: str
) -> None:
    expected = ranks.run(2, partly_used, "", how)
    found = ranks.run(2, partly_used, mode, how)
    assert expected[0] == expected[1] and found[0] == found[1]
    for got, want in zip(found[0], expected[0], strict=True):
        assert max(abs(a - b) for a, b in zip(got, want, strict=True)) < 1e-5


def overlap(rank: int, size: int, broken: bool) -> tuple[list[int], int, list[str]]:
    """How many buckets were under way when each gradient reached its parameter, buckets, and records of breaks."""
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(6)]

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(blocks)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for i, block in enumerate(self.blocks):
                x = block(x)
                if broken and i == 2:
                    gc.collect()
            return x

    model = DistributedDataParallel(Model(), bucket_cap_mb=0.004)
    forward = torch.compile(model)
    x = torch.ones(4, 32)
    with collect() as records:
        forward(x).sum().backward()
    under_way: list[int] = []

    def count(parameter: torch.Tensor) -> None:
        sent = [r for r in dist.flight_records() if r["op"] == "all_reduce"]
        under_way.append(len(sent) - len(model._reducer.buckets))

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(count)
    model.zero_grad()
    forward(x).sum().backward()
    return (
        under_way,
        len(model._reducer.buckets),
        [r.code for r in records if r.kind == "graph_break"],
    )


def test_buckets_are_averaged_while_a_compiled_backward_runs() -> None:
    for under_way, buckets, records in ranks.run(2, overlap, False):
        assert buckets > 3
        assert under_way == [buckets] * 12
        assert not records
    for under_way, buckets, records in ranks.run(2, overlap, True):
        assert records
        assert under_way[0] < buckets == under_way[-1]
        assert len(under_way) == 12


def through(rank: int, size: int) -> None:
    """Gradients of collectives: rank r's loss weighs its result by r + 1."""
    from argand.distributed.nn import functional as collective

    def gradient(function, *shape: int) -> list[float]:
        x = (torch.ones(*shape) * (rank + 1)).requires_grad_()
        y = function(x)
        parts = y if isinstance(y, tuple) else (y,)
        sum((part * (rank + 1)).sum() for part in parts).backward()
        assert x.grad is not None
        return x.grad.flatten().tolist()

    assert gradient(collective.all_reduce, 2) == [3.0, 3.0]
    assert gradient(collective.all_gather, 2) == [3.0, 3.0]
    assert gradient(lambda x: collective.broadcast(x, 1), 2) == [3.0 * rank] * 2
    assert gradient(lambda x: collective.gather(x, 0), 2) == [1.0, 1.0]
    assert gradient(lambda x: collective.reduce(x, 1), 2) == [2.0, 2.0]
    expected = [1.0, 2.0] if rank == 1 else [0.0, 0.0]
    assert gradient(lambda x: collective.scatter(list(x.unbind(0)), 1), 2, 1) == expected
    output = torch.empty(1)
    assert gradient(lambda x: collective.reduce_scatter(output, [*x.unbind(0)]), 2, 1) == [1, 2]
    assert output.item() == 3
    outputs = [torch.empty(1), torch.empty(1)]
    assert gradient(lambda x: collective.all_to_all(outputs, [*x.unbind(0)]), 2, 1) == [1, 2]
    assert [o.item() for o in outputs] == [1, 2]
    output = torch.empty(2)
    assert gradient(lambda x: collective.all_to_all_single(output, x), 2) == [1, 2]

    x = torch.arange(2.0) + rank
    assert collective.broadcast(x, 1).tolist() == [1, 2]
    assert [t.tolist() for t in collective.gather(x, 1)] == (
        [[0, 1], [1, 2]] if rank else [[0, 0], [0, 0]]
    )
    assert collective.reduce(x, 0, dist.ReduceOp.RedOpType.MAX).tolist() == [1, 2]
    assert collective.scatter([x, x + 5], 0).tolist() == ([5, 6] if rank else [0, 1])
    future = dist.all_reduce(x, async_op=True).get_future()
    assert torch.futures.wait_all([future])[0][0].tolist() == [1, 3]


def test_gradients_flow_through_collectives() -> None:
    ranks.run(2, through)
