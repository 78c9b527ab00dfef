"""Collectives of four processes against a NumPy model, for all dtypes and many sizes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_distributed as dist
from argand_distributed import testing as ranks

# Four processes and Gloo here; `check_nccl.py` runs the same on a host's GPUs.
SIZE = 4
DEVICE = "cpu"
DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
SIZES = [0, 1, 3, 17, 1000, 4099]
INTEGERS = DTYPES[1:6]


def numbers(rank: int, n: int, dtype: str, seed: int = 0) -> Any:
    """Small whole numbers as a NumPy array in which every dtype computes exactly (bfloat16: as float32)."""
    rng = np.random.default_rng([rank, n, seed, DTYPES.index(dtype)])
    kind = "float32" if dtype == "bfloat16" else dtype
    if dtype == "bool":
        return rng.random(n) < 0.5
    values = rng.integers(1, 4, n)
    if dtype.startswith("complex"):
        return (values + 1j * rng.integers(-2, 3, n)).astype(kind)
    return values.astype(kind)


def tensor(array: Any, dtype: str) -> c10.Tensor:
    return c10.from_numpy(np.array(array)).to(getattr(c10, dtype)).to(DEVICE)


def blank(*shape: int, dtype: str) -> c10.Tensor:
    return aten.empty(*shape, dtype=getattr(c10, dtype), device=DEVICE)


def array(t: c10.Tensor) -> Any:
    t = t.cpu()
    return t.to(c10.float32).numpy() if t.dtype == c10.bfloat16 else t.numpy()


REDUCE: dict[str, Any] = {
    "SUM": lambda stack: (
        np.add.reduce(stack, dtype=stack.dtype) if stack.dtype != bool else stack.any(0)
    ),
    "AVG": lambda stack: (
        (np.add.reduce(stack, dtype=stack.dtype) / SIZE).astype(stack.dtype)
        if stack.dtype.kind in "fc"
        else np.add.reduce(stack, dtype=stack.dtype) // SIZE
    ),
    "PRODUCT": lambda stack: (
        np.multiply.reduce(stack, dtype=stack.dtype) if stack.dtype != bool else stack.all(0)
    ),
    "MIN": lambda stack: stack.min(0),
    "MAX": lambda stack: stack.max(0),
    "BAND": np.bitwise_and.reduce,
    "BOR": np.bitwise_or.reduce,
    "BXOR": np.bitwise_xor.reduce,
}


def operations(dtype: str) -> list[str]:
    on_gpu = (
        DEVICE != "cpu"
    )  # NCCL has no bitwise reductions, no products of complex numbers, no averages of bool
    if dtype.startswith("complex"):
        return ["SUM", "AVG"] if on_gpu else ["SUM", "AVG", "PRODUCT"]
    if on_gpu:
        return [n for n in ("SUM", "AVG", "PRODUCT", "MIN", "MAX") if dtype != "bool" or n != "AVG"]
    if dtype == "bool":
        return [name for name in REDUCE if name != "AVG"]
    return list(REDUCE) if dtype in INTEGERS else ["SUM", "AVG", "PRODUCT", "MIN", "MAX"]


def equal(got: c10.Tensor, expected: Any) -> None:
    np.testing.assert_array_equal(array(got).reshape(np.shape(expected)), expected)


def check_reductions(rank: int, n: int, dtype: str) -> None:
    stack = np.stack([numbers(r, n, dtype) for r in range(SIZE)])
    for name in operations(dtype):
        op = getattr(dist.ReduceOp, name)
        expected = REDUCE[name](stack)
        t = tensor(stack[rank], dtype)
        dist.all_reduce(t, op)
        equal(t, expected)
        t = tensor(stack[rank], dtype)
        dist.reduce(t, SIZE - 2, op)
        equal(t, expected if rank == SIZE - 2 else stack[rank])
        parts = np.stack([numbers(r, n * SIZE, dtype, 1) for r in range(SIZE)])
        out = blank(n, dtype=dtype)
        mine = REDUCE[name](parts)[rank * n : (rank + 1) * n]
        dist.reduce_scatter_tensor(out, tensor(parts[rank], dtype), op)
        equal(out, mine)
        out = blank(n, dtype=dtype)
        dist.reduce_scatter(out, [tensor(p, dtype) for p in np.split(parts[rank], SIZE)], op)
        equal(out, mine)


def check_moves(rank: int, n: int, dtype: str) -> None:
    all_of = [numbers(r, n, dtype) for r in range(SIZE)]
    t = tensor(all_of[rank], dtype)
    dist.broadcast(t, 1)
    equal(t, all_of[1])
    outs = [blank(n, dtype=dtype) for _ in range(SIZE)]
    dist.all_gather(outs, tensor(all_of[rank], dtype))
    for out, expected in zip(outs, all_of, strict=True):
        equal(out, expected)
    whole = blank(SIZE, n, dtype=dtype)
    dist.all_gather_into_tensor(whole, tensor(all_of[rank], dtype))
    equal(whole, np.stack(all_of))
    outs = [blank(n, dtype=dtype) for _ in range(SIZE)] if rank == SIZE - 1 else None
    dist.gather(tensor(all_of[rank], dtype), outs, dst=SIZE - 1)
    for out, expected in zip(outs or [], all_of, strict=False):
        equal(out, expected)
    t = blank(n, dtype=dtype)
    dist.scatter(t, [tensor(a, dtype) for a in all_of] if rank == 0 else None)
    equal(t, all_of[rank])
    table = [[numbers(r * SIZE + to, n, dtype, 2) for to in range(SIZE)] for r in range(SIZE)]
    outs = [blank(n, dtype=dtype) for _ in range(SIZE)]
    dist.all_to_all(outs, [tensor(a, dtype) for a in table[rank]])
    for r, out in enumerate(outs):
        equal(out, table[r][rank])
    single = blank(SIZE * n, dtype=dtype)
    dist.all_to_all_single(single, tensor(np.concatenate(table[rank]), dtype))
    equal(single, np.concatenate([table[r][rank] for r in range(SIZE)]))


def every_size(rank: int, size: int, dtype: str, sizes: list[int]) -> None:
    for n in sizes:
        check_reductions(rank, n, dtype)
        check_moves(rank, n, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_collectives_equal_the_model(dtype: str) -> None:
    ranks.run(SIZE, every_size, dtype, SIZES)


def large(rank: int, size: int, dtype: str) -> None:
    """64 MB: a pattern of which the sum over the ranks is known."""
    kind = getattr(c10, dtype)
    n = (64 << 20) // aten.empty(1, dtype=kind).element_size()
    pattern = (aten.arange(n) % 5).to(kind)
    x = pattern + (pattern * 0 + rank)
    dist.all_reduce(x)
    assert aten.equal(x, pattern * size + (pattern * 0 + sum(range(size))))
    dist.broadcast(x, 1)
    part = aten.empty(n // size, dtype=kind)
    dist.reduce_scatter_tensor(part, pattern)
    assert aten.equal(part, pattern[rank * (n // size) : (rank + 1) * (n // size)] * size)
    dist.all_gather_into_tensor(x, part)
    assert aten.equal(x, pattern * size)


@pytest.mark.skipif(
    "ARGAND_TEST_LARGE" not in os.environ,
    reason="takes gigabytes; run by hand with ARGAND_TEST_LARGE=1",
)
@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_sixty_four_megabytes(dtype: str) -> None:
    ranks.run(SIZE, large, dtype, seconds=120.0, limit=240.0)


def uneven(rank: int, size: int) -> None:
    counts = [3, 0, 5, 2]
    outs = [aten.empty(n) for n in counts]
    dist.all_gather(outs, aten.full((counts[rank],), float(rank)))
    assert [out.tolist() for out in outs] == [[float(r)] * n for r, n in enumerate(counts)]
    # Rank r sends r + to elements to rank `to`.
    sends = [rank + to for to in range(size)]
    receives = [r + rank for r in range(size)]
    given = aten.cat([aten.full((n,), float(10 * rank + to)) for to, n in enumerate(sends)])
    out = aten.empty(sum(receives))
    dist.all_to_all_single(out, given, receives, sends)
    assert out.tolist() == [float(10 * r + rank) for r, n in enumerate(receives) for _ in range(n)]


def test_sizes_that_differ_from_rank_to_rank() -> None:
    ranks.run(SIZE, uneven)


def strided(rank: int, size: int) -> None:
    base = aten.zeros(4, 6)
    view = base.t()[::2]
    view.fill_(rank + 1.0)
    dist.all_reduce(view)
    assert view.tolist() == [[10.0] * 4] * 3
    assert base[:, 1].tolist() == [0.0] * 4
    out = aten.empty(6, 2).t()
    work = dist.broadcast(aten.arange(12.0).reshape(2, 6) if rank == 0 else out, 0, async_op=True)
    assert work is not None
    work.wait()
    if rank:
        assert out.flatten().tolist() == list(range(12))
    version = view._version
    dist.all_reduce(view)
    assert view._version > version


def test_strided_tensors_and_versions() -> None:
    ranks.run(SIZE, strided)


def point_to_point(rank: int, size: int) -> list[int]:
    right, left = (rank + 1) % size, (rank - 1) % size
    got = aten.empty(7)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, aten.full((7,), float(rank)), right),
            dist.P2POp(dist.irecv, got, left),
        ]
    )
    for work in works:
        work.wait()
    assert got.tolist() == [float(left)] * 7
    if rank == 0:
        senders = []
        for _ in range(size - 1):
            t = aten.empty(2)
            senders.append(dist.recv(t, tag=5))
            assert t.tolist() == [float(senders[-1])] * 2
        return sorted(senders)
    dist.send(aten.full((2,), float(rank)), 0, tag=5)
    return []


def test_point_to_point() -> None:
    assert ranks.run(SIZE, point_to_point)[0] == [1, 2, 3]


def asynchronous(rank: int, size: int) -> None:
    x = aten.full((1000,), float(rank))
    works = [
        dist.all_reduce(x, async_op=True) for _ in range(3)
    ]  # in this order, each on the last one's result
    futures = [work.get_future() for work in works if work is not None]
    doubled = futures[-1].then(lambda f: f.value()[0] * 2)
    assert doubled.wait()[0].item() == 6.0 * 16 * 2
    assert all(f.done() for f in futures)
    assert all(work.is_completed() and work.is_success() for work in works if work is not None)
    assert works[0] is not None
    assert works[0].exception() is None


def test_asynchronous_work() -> None:
    ranks.run(SIZE, asynchronous)


def groups(rank: int, size: int) -> None:
    odd = dist.new_group([1, 3])
    even = dist.new_group([2, 0])
    own = odd if rank % 2 else even
    other = even if rank % 2 else odd
    assert dist.get_rank(own) == rank // 2
    assert dist.get_world_size(own) == 2
    assert dist.get_rank(other) == -1
    assert other is dist.GroupMember.NON_GROUP_MEMBER
    x = aten.ones(3) * rank
    dist.all_reduce(x, group=own)
    assert x.tolist() == [4.0 if rank % 2 else 2.0] * 3
    dist.all_reduce(x, group=other)  # nothing
    x = aten.full((1,), float(rank))
    dist.broadcast(x, src=dist.get_global_rank(own, 1), group=own)
    assert x.item() == (3.0 if rank % 2 else 2.0)
    mine, all_groups = dist.new_subgroups(2)
    assert len(all_groups) == 2
    assert dist.get_process_group_ranks(mine) == [rank // 2 * 2, rank // 2 * 2 + 1]
    pair, pairs = dist.new_subgroups_by_enumeration([[3, 0], [2]])
    assert len(pairs) == 2
    assert dist.get_process_group_ranks(pair) == [0, 3] if rank in (0, 3) else pair is not mine
    assert (pair is None) == (rank == 1)
    with pytest.raises(ValueError, match="no rank appears twice"):
        dist.new_subgroups_by_enumeration([[0, 1], [1]])
    assert dist.is_backend_available("gloo")
    assert not dist.is_backend_available("smoke signals")
    assert dist.get_pg_count() == {0: 4, 1: 3, 2: 4, 3: 4}[rank]
    dist.monitored_barrier()
    dist.barrier()


def test_groups() -> None:
    ranks.run(SIZE, groups)


def coalesced(rank: int, size: int) -> None:
    """Calls within a manager are under way together, and over behind it or its wait."""
    xs = [aten.full((n,), float(rank)) for n in (1, 1000, 100_000)]
    with dist._coalescing_manager() as manager:
        for x in xs:
            assert dist.all_reduce(x) is None
        assert len(manager.works) == 3
    assert [x[0].item() for x in xs] == [6.0] * 3
    whole = aten.empty(size, 2)
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_gather_into_tensor(whole, xs[1][:2] * rank)
        dist.broadcast(xs[0], 2)
    manager.wait()
    assert whole[:, 0].tolist() == [0.0, 6.0, 12.0, 18.0]
    dist.all_reduce(xs[0])  # alone again
    assert xs[0].item() == 24.0


def test_coalesced_calls() -> None:
    ranks.run(SIZE, coalesced)


def wrong_arguments(rank: int, size: int) -> None:
    x = aten.ones(3)
    with pytest.raises(TypeError, match="all_reduce: got list for tensor"):
        dist.all_reduce([x])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"ReduceOp\.BAND of float32"):
        dist.all_reduce(x, dist.ReduceOp.BAND)
    with pytest.raises(
        ValueError, match="got 1 tensors in tensor_list, expected one for each of the 2"
    ):
        dist.all_gather([x], x)
    with pytest.raises(ValueError, match="expected 2 times as many"):
        dist.all_gather_into_tensor(aten.empty(5), x)
    with pytest.raises(ValueError, match="own rank"):
        dist.send(x, rank)
    with pytest.raises(ValueError, match="rank 7 is not in"):
        dist.broadcast(x, 7)
    with pytest.raises(RuntimeError, match="got a tensor on meta"):
        dist.all_reduce(aten.empty(3, device="meta"))
    dist.all_reduce(x)  # the group still works
    assert x.tolist() == [2.0] * 3


def test_wrong_arguments_are_told_and_nothing_is_sent() -> None:
    ranks.run(2, wrong_arguments)
