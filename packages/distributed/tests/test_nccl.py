"""The NCCL group on stand-ins for the CUDA driver and the library: what is called with which buffers, counts, types and roots."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import argand_c10 as c10
import argand_distributed as dist
from argand_distributed import testing as ranks

if not Path(os.environ.get("ARGAND_CUDA_DRIVER", "")).is_file():
    pytest.skip("ARGAND_CUDA_DRIVER does not name the driver's stand-in", allow_module_level=True)
sys.modules["argand_aten_cuda"] = types.ModuleType("argand_aten_cuda")  # no kernel is called here
SIZE = 3


def device(values: Any, dtype: Any = c10.float32) -> c10.Tensor:
    return c10.tensor(values, dtype=dtype, device="cuda:0")


def zeros(*shape: int) -> c10.Tensor:
    return c10.tensor(np.zeros(shape).tolist(), device="cuda:0")


def begin(function: Any) -> Any:
    """Makes a group with both backends beside the harness's."""

    def body(rank: int, size: int, *arguments: Any) -> Any:
        group = dist.new_group(backend="cpu:gloo,cuda:nccl")
        return function(rank, size, group, *arguments)

    return body


def collectives(rank: int, size: int, group: Any) -> None:
    x = device([1.0 + rank, 2.0])
    dist.all_reduce(x, group=group)
    assert x.tolist() == [6.0, 6.0]
    for op, expected in (
        (dist.ReduceOp.AVG, 2.0),
        (dist.ReduceOp.MAX, 3.0),
        (dist.ReduceOp.PRODUCT, 6.0),
    ):
        x = device([1.0 + rank])
        dist.all_reduce(x, op, group)
        assert x.item() == expected
    x = device([rank == 1, False], c10.bool)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [True, False]
    x = device([1 + rank], c10.int64)
    dist.reduce(x, 1, group=group)
    assert x.item() == (6 if rank == 1 else 1 + rank)
    x = device([[float(rank)] * 3] * 2)
    dist.broadcast(x, 2, group)
    assert x.tolist() == [[2.0] * 3] * 2
    own = device([10.0 * rank, 1.0])
    outs = [zeros(2) for _ in range(size)]
    dist.all_gather(outs, own, group)
    assert [o.tolist() for o in outs] == [[10.0 * r, 1.0] for r in range(size)]
    whole = zeros(size, 2)
    dist.all_gather_into_tensor(whole, own, group)
    assert whole.tolist() == [[10.0 * r, 1.0] for r in range(size)]
    out = zeros(2)
    dist.reduce_scatter_tensor(out, device([float(i + rank) for i in range(2 * size)]), group=group)
    assert out.tolist() == [6.0 * rank + 3.0, 6.0 * rank + 6.0]
    dist.reduce_scatter(out, [device([float(r), 1.0]) for r in range(size)], group=group)
    assert out.tolist() == [3.0 * rank, 3.0]
    gathered = [zeros(2) for _ in range(size)] if rank == 1 else None
    dist.gather(own, gathered, dst=1, group=group)
    assert [g.tolist()[0] for g in gathered or []] == ([0.0, 10.0, 20.0] if rank == 1 else [])
    dist.scatter(
        out, [device([float(r), 0.0]) for r in range(size)] if rank == 0 else None, group=group
    )
    assert out.tolist() == [float(rank), 0.0]
    single = zeros(size)
    dist.all_to_all_single(
        single, device([float(10 * rank + to) for to in range(size)]), group=group
    )
    assert single.tolist() == [float(10 * r + rank) for r in range(size)]
    dist.barrier(group)


def messages(rank: int, size: int, group: Any) -> None:
    dist.barrier(dist.group.WORLD)
    got = zeros(4)
    for work in dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, device([float(rank)] * 4), (rank + 1) % size, group),
            dist.P2POp(dist.irecv, got, (rank - 1) % size, group),
        ]
    ):
        work.wait()
    assert got.tolist() == [float((rank - 1) % size)] * 4
    with pytest.raises(ValueError, match="cannot receive from any rank"):
        dist.recv(got, group=group)
    with pytest.raises(TypeError, match="NCCL cannot compute"):
        dist.all_reduce(device([1], c10.int32), dist.ReduceOp.BXOR, group)
    with pytest.raises(TypeError, match="int16 tensors, which NCCL cannot reduce"):
        dist.all_reduce(device([1], c10.int16), group=group)
    work = dist.all_reduce(got, group=group, async_op=True)
    assert work is not None
    work.wait()
    assert work.is_completed()
    calls = [r["call"] for r in dist.flight_records(group)]
    assert "send(float32[4])" in calls
    assert calls[-1] == "all_reduce(float32[4], SUM)"


@pytest.mark.parametrize("body", [collectives, messages])
def test_nccl_group(body: Any) -> None:
    ranks.run(SIZE, begin(body))
