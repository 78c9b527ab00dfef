"""Collectives as operators: eager, derived, traced and compiled."""

from __future__ import annotations

from typing import Any

import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_distributed as dist
from argand_distributed import functional as fc
from argand_distributed import testing as ranks


def values(rank: int, size: int) -> None:
    x = aten.arange(6.0).reshape(2, 3) + rank
    total = size * aten.arange(6.0).reshape(2, 3) + sum(range(size))
    assert aten.equal(fc.all_reduce(x), total)
    assert aten.equal(fc.all_reduce(x, "avg"), total / size)
    assert aten.equal(fc.broadcast(x, 1), x - rank + 1)
    assert fc.all_gather_tensor(x).shape == (2 * size, 3)
    assert aten.equal(fc.all_gather_tensor(x, 1)[:, 3:6], x - rank + 1)
    assert aten.equal(fc.reduce_scatter_tensor(x), total[rank : rank + 1])
    assert fc.all_to_all_single(x)[:, 0].tolist() == [3.0 * rank, 3.0 * rank + 1]
    assert fc.all_to_all_single(aten.ones(3, 2), [1 + rank] * 2, [1, 2]).shape == (2 + 2 * rank, 2)
    assert x[0, 0].item() == rank  # unchanged
    with pytest.raises(ValueError, match="got reduce_op 'MEAN'"):
        fc.all_reduce(x, "mean")
    shape = fc.operators.collective_all_gather(
        aten.empty(2, 3, device="meta"), size, "default"
    ).shape
    assert shape == (2 * size, 3)


def test_values_and_shapes() -> None:
    ranks.run(2, values)


def gradients(rank: int, size: int) -> None:
    def of(function: Any, shape: tuple[int, ...] = (4, 2)) -> c10.Tensor:
        x = (aten.ones(*shape) * (rank + 1)).requires_grad_()
        y = function(x)
        # Rank r's loss weighs its result by r + 1.
        (y * (rank + 1)).sum().backward()
        assert x.grad is not None
        return x.grad

    assert aten.equal(of(fc.all_reduce), aten.full((4, 2), 3.0))
    assert aten.equal(of(lambda x: fc.all_reduce(x, "AVG")), aten.full((4, 2), 1.5))
    assert aten.equal(of(fc.all_gather_tensor), aten.full((4, 2), 3.0))
    assert of(fc.reduce_scatter_tensor)[:, 0].tolist() == [1.0, 1.0, 2.0, 2.0]
    assert of(lambda x: fc.reduce_scatter_tensor(x, "AVG"))[:, 0].tolist() == [0.5, 0.5, 1.0, 1.0]
    assert of(fc.all_to_all_single)[:, 0].tolist() == [1.0, 1.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="no derivative here"):
        of(lambda x: fc.all_reduce(x, "MAX"))


def test_gradients() -> None:
    ranks.run(2, gradients)


def from_ops(rank: int, size: int) -> None:
    """The same operators by the dispatcher, under the group's name."""
    group = dist.new_group([0, 1])
    y = c10.find_operator("collective_all_reduce")(aten.ones(2), "SUM", group.group_name)
    assert c10.find_operator("collective_wait")(y).tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match="'nobody' does not exist here"):
        c10.find_operator("collective_all_reduce")(aten.ones(2), "SUM", "nobody")


def test_groups_by_name() -> None:
    ranks.run(2, from_ops)
