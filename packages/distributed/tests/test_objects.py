"""Objects, meshes, samplers."""

from __future__ import annotations

import math
from typing import Any

import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_distributed as dist
from argand_distributed import testing as ranks
from argand_distributed.objects import decode, encode

VALUES: list[Any] = [
    None,
    True,
    -(2**70),
    1.5,
    math.inf,
    -0.0,
    1 + 2j,
    "text",
    b"\x00bytes",
    [1, [2, (3,)]],
    {"a": 1, 2: [None], (1, "x"): {"y"}},
    frozenset({1}),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back(value: Any) -> None:
    again = decode(encode(value))
    assert again == value
    assert type(again) is type(value)


def test_tensors_come_back() -> None:
    tensors = {
        name: aten.arange(6).reshape(2, 3).to(getattr(c10, name))
        for name in ("float32", "bfloat16", "complex64", "bool", "int8")
    }
    tensors["empty"] = aten.empty(0, 4)
    tensors["scalar"] = c10.tensor(2.5)
    again = decode(encode([tensors, 1]))[0]
    for name, t in tensors.items():
        assert again[name].dtype == t.dtype
        assert again[name].shape == t.shape
        assert aten.equal(again[name], t)


def test_nan_and_other_objects() -> None:
    assert math.isnan(decode(encode(math.nan)))
    with pytest.raises(
        TypeError, match=r"op: got function at the object\['f'\]\[0\], expected None, bool"
    ):
        encode({"f": [len, test_values_come_back][1:]}, "op")


def objects(rank: int, size: int) -> None:
    mine = {"rank": rank, "t": aten.full((rank + 1,), float(rank))}
    everyone: list[Any] = [None] * size
    dist.all_gather_object(everyone, mine)
    assert [v["rank"] for v in everyone] == list(range(size))
    assert [v["t"].numel() for v in everyone] == [1, 2, 3]
    gathered: list[Any] | None = [None] * size if rank == 1 else None
    dist.gather_object(rank * 10, gathered, dst=1)
    assert gathered in (None, [0, 10, 20])
    sent = ["x", {"y": 1.5}] if rank == 2 else [None, None]
    dist.broadcast_object_list(sent, src=2)
    assert sent == ["x", {"y": 1.5}]
    out: list[Any] = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in range(size)] if rank == 0 else None)
    assert out == [f"for {rank}"]
    pair = dist.new_group([1, 2])
    if rank:
        sent = [rank]
        dist.broadcast_object_list(sent, group=pair, group_src=1)
        assert sent == [2]
        found: list[Any] | None = [None] * 2 if rank == 2 else None
        dist.gather_object(rank, found, group=pair, group_dst=1)
        assert found in (None, [1, 2])
        dist.scatter_object_list(out, ["a", "b"] if rank == 1 else None, src=1, group=pair)
        assert out == ["a" if rank == 1 else "b"]
    if rank == 0:
        dist.send_object_list([1, "two"], 1)
    elif rank == 1:
        got: list[Any] = []
        assert dist.recv_object_list(got, 0) == 0
        assert got == [1, "two"]
    with pytest.raises(TypeError, match="all_gather_object: got object"):
        dist.all_gather_object(everyone, object())


def test_object_collectives() -> None:
    ranks.run(3, objects)


def mesh(rank: int, size: int) -> None:
    grid = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    assert (grid.ndim, grid.shape, grid.size(), grid.size(1)) == (2, (2, 2), 4, 2)
    assert grid.get_coordinate() == [rank // 2, rank % 2]
    assert grid.get_local_rank("shard") == rank % 2
    x = aten.full((1,), float(rank))
    dist.all_reduce(x, group=grid.get_group("shard"))
    assert x.item() == (1.0 if rank < 2 else 5.0)
    column = grid["replicate"]
    assert column.shape == (2,)
    assert column.get_group().ranks == [rank % 2, rank % 2 + 2]
    assert grid == dist.DeviceMesh("cpu", [[0, 1], [2, 3]], mesh_dim_names=("replicate", "shard"))
    with pytest.raises(KeyError, match="no dimension 'x'"):
        grid.get_group("x")
    with pytest.raises(ValueError, match="expected one of 4 places"):
        dist.init_device_mesh("cpu", (3,))


def test_device_mesh() -> None:
    ranks.run(4, mesh)


@pytest.mark.parametrize("n", [0, 1, 10, 12])
@pytest.mark.parametrize("drop_last", [False, True])
def test_distributed_sampler(n: int, drop_last: bool) -> None:
    samplers = [
        dist.DistributedSampler(range(n), 3, rank, drop_last=drop_last) for rank in range(3)
    ]
    dealt = [list(s) for s in samplers]
    assert [len(d) for d in dealt] == [len(s) for s in samplers]
    assert len({len(d) for d in dealt}) == 1
    everything = sorted({i for d in dealt for i in d})
    assert len(everything) == (n // 3 * 3 if drop_last else n)
    for s in samplers:
        s.set_epoch(1)
    if n == 12:
        assert [list(s) for s in samplers] != dealt
        assert list(dist.DistributedSampler(range(n), 3, 1, shuffle=False)) == [1, 4, 7, 10]
    with pytest.raises(ValueError, match="got rank 3, expected 0 to 2"):
        dist.DistributedSampler(range(n), 3, 3)
