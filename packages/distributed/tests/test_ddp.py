"""DistributedDataParallel against one process that has all the data; hooks, unused parameters, buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_distributed as dist
import argand_nn as nn
from argand_distributed import testing as ranks
from argand_nn import functional as F
from argand_nn.optim import SGD, AdamW

BATCH = 24


def network(seed: int = 0) -> nn.Module:
    c10.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)
    )


def data(step: int) -> tuple[c10.Tensor, c10.Tensor]:
    rng = np.random.default_rng(step)
    x = rng.standard_normal((BATCH, 16)).astype("float32")
    return c10.from_numpy(x), c10.from_numpy(np.argmax(x[:, :4], 1).astype("int64"))


def steps(
    model: Any, count: int, rank: int = 0, size: int = 1, accumulate: bool = False
) -> list[float]:
    optimizer = AdamW(model.parameters(), lr=1e-2)
    losses = []
    for step in range(count):
        x, y = data(step)
        optimizer.zero_grad()
        if accumulate:  # two halves, of which only the second one communicates
            with model.no_sync():
                (
                    F.cross_entropy(model(x[: BATCH // 2][rank::size]), y[: BATCH // 2][rank::size])
                    / 2
                ).backward()
            loss = (
                F.cross_entropy(model(x[BATCH // 2 :][rank::size]), y[BATCH // 2 :][rank::size]) / 2
            )
            loss.backward()
            losses.append(0.0)
        else:
            loss = F.cross_entropy(model(x[rank::size]), y[rank::size])
            loss.backward()
            mean = loss.detach().clone()
            if size > 1:
                dist.all_reduce(mean, dist.ReduceOp.AVG)
            losses.append(mean.item())
        optimizer.step()
    return losses


def train(rank: int, size: int, how: dict[str, Any], accumulate: bool) -> tuple[list[float], Any]:
    # Rank 0's parameters count, so others may begin anywhere.
    model = dist.DistributedDataParallel(network(rank), bucket_cap_mb=0.01, **how)
    assert len(model._reducer.buckets) > 1
    losses = steps(model, 20, rank, size, accumulate)
    return losses, [p.detach().numpy() for p in model.parameters()]


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(
    "how", [{}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}], ids=str
)
def test_training_equals_one_process(size: int, how: dict[str, Any]) -> None:
    model = network()
    expected = steps(model, 20)
    for losses, weights in ranks.run(size, train, how, False):
        np.testing.assert_allclose(losses, expected, rtol=2e-6)
        for w, p in zip(weights, model.parameters(), strict=True):
            np.testing.assert_allclose(w, p.detach().numpy(), rtol=2e-3, atol=2e-5)


def test_no_sync_adds_up_and_sends_once() -> None:
    model = network()
    steps(model, 20)
    first, second = ranks.run(2, train, {}, True)
    for a, b, p in zip(first[1], second[1], model.parameters(), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, p.detach().numpy(), rtol=2e-3, atol=2e-5)


class Branches(nn.Module):
    """Uses one of two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, x: c10.Tensor, which: str) -> dict[str, c10.Tensor]:
        return {"out": (self.a if which == "a" else self.b)(x)}


def unused(rank: int, size: int) -> None:
    c10.manual_seed(0)
    model = dist.DistributedDataParallel(Branches(), find_unused_parameters=True)
    for _ in range(2):
        model.zero_grad()
        # Each rank uses another layer: both get half of a gradient.
        model(aten.ones(2, 4), "a" if rank else "b")["out"].sum().backward()
        assert model.module.a.bias.grad.tolist() == [1.0] * 4
        assert model.module.b.bias.grad.tolist() == [1.0] * 4
    plain = dist.DistributedDataParallel(Branches())
    plain(aten.ones(2, 4), "a")["out"].sum().backward()
    with pytest.raises(RuntimeError, match=r"gave no gradient to b\.weight, b\.bias.*find_unused"):
        plain(aten.ones(2, 4), "a")


def test_unused_parameters() -> None:
    ranks.run(2, unused)


def hooks(rank: int, size: int) -> None:
    def gradient(hook: Any, state: Any = None) -> c10.Tensor:
        c10.manual_seed(0)
        model = dist.DistributedDataParallel(nn.Linear(8, 8))
        if hook:
            model.register_comm_hook(state, hook)
            with pytest.raises(RuntimeError, match="at most one"):
                model.register_comm_hook(state, hook)
        model(aten.full((2, 8), rank + 0.5)).pow(2).sum().backward()
        return model.module.weight.grad

    expected = gradient(None)
    seen: list[tuple[int, bool]] = []

    def twice(state: list[tuple[int, bool]], bucket: dist.GradBucket) -> dist.Future[Any]:
        state.append((bucket.index(), bucket.is_last()))
        assert len(bucket.gradients()) == len(bucket.parameters()) == 2
        return dist.allreduce_hook(None, bucket).then(lambda f: f.value()[0] * 2)

    assert aten.allclose(gradient(twice, seen), expected * 2)
    assert seen == [(0, True)]
    halved = dist.fp16_compress_wrapper(dist.allreduce_hook)
    assert aten.allclose(gradient(halved), expected, rtol=2e-3, atol=2e-3)
    for hook, tolerance in ((dist.fp16_compress_hook, 2e-3), (dist.bf16_compress_hook, 2e-2)):
        assert aten.allclose(gradient(hook), expected, rtol=tolerance, atol=tolerance)


def test_communication_hooks() -> None:
    ranks.run(2, hooks)


def buffers(rank: int, size: int) -> None:
    model = dist.DistributedDataParallel(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 1)))
    norm = model.module[0]
    for step in range(2):
        model(aten.full((4, 3), float(rank + step)) + aten.rand(4, 3)).sum().backward()
    with dist_eval(model):
        before = norm.running_mean.clone()
        model(aten.ones(4, 3))
        assert aten.equal(norm.running_mean, before)
    model.train()
    model(aten.ones(4, 3))  # begins with rank 0's
    everyone = [aten.empty(3) for _ in range(size)]
    dist.all_gather(everyone, norm.running_mean)
    assert aten.equal(everyone[0], everyone[1])


class dist_eval:
    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def __enter__(self) -> None:
        self.model.eval()

    def __exit__(self, *error: object) -> None:
        self.model.train()


def test_buffers_follow_rank_zero() -> None:
    ranks.run(2, buffers)


def differ(rank: int, size: int) -> None:
    with pytest.raises(
        RuntimeError, match=r"ranks 0 and 1 have different modules: \['weight', \[3, 3\]"
    ):
        dist.DistributedDataParallel(nn.Linear(3, 3 + rank))
    with pytest.raises(RuntimeError, match="without parameters"):
        dist.DistributedDataParallel(nn.ReLU())


def test_modules_that_differ() -> None:
    ranks.run(2, differ)


def overlap(rank: int, size: int) -> None:
    """Buckets are sent while backward goes on: the last one's record is queued after the first one has begun."""
    model = dist.DistributedDataParallel(network(), bucket_cap_mb=0.001)
    SGD(model.parameters(), lr=0.1)
    F.cross_entropy(model(data(0)[0]), data(0)[1]).backward()
    sent = [r for r in dist.flight_records() if r["op"] == "all_reduce"]
    assert len(sent) == len(model._reducer.buckets) > 1
    assert all(str(r["file"]).endswith("test_ddp.py") for r in sent)  # the line of backward()


def test_buckets_are_sent_as_they_fill() -> None:
    ranks.run(2, overlap)
