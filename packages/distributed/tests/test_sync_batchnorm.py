"""SyncBatchNorm on several ranks against BatchNorm on one process with all the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import argand_c10 as c10
import argand_distributed as dist
import argand_nn as nn
from argand_distributed import testing as ranks

DATA = np.random.default_rng(0).standard_normal((9, 3, 4)) * 2 + 5
WEIGHT = np.random.default_rng(1).standard_normal((9, 3, 4))


def run(norm: Any, rows: slice) -> tuple[Any, ...]:
    """Three steps: the last results, gradients and statistics."""
    for _ in range(3):
        norm.zero_grad()
        x = c10.from_numpy(DATA[rows].copy()).requires_grad_()
        out = norm(x)
        (out * out * c10.from_numpy(WEIGHT[rows].copy())).sum().backward()
    return (
        out.detach().numpy(),
        x.grad.numpy(),
        [p.grad.numpy() for p in norm.parameters()],
        [b.numpy() for b in norm.buffers()],
    )


def synced(rank: int, size: int, momentum: float | None) -> tuple[Any, ...]:
    norm = dist.SyncBatchNorm(3, momentum=momentum, dtype=c10.float64)
    # Ranks with batches of different sizes: 5 and 4, or 3, 4 and 2.
    ends = {2: [0, 5, 9], 3: [0, 3, 7, 9]}[size]
    return run(norm, slice(ends[rank], ends[rank + 1]))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("momentum", [0.2, None])
def test_equals_one_process(size: int, momentum: float | None) -> None:
    norm = nn.BatchNorm1d(3, momentum=momentum, dtype=c10.float64)
    out, grad, grads, buffers = run(norm, slice(None))
    parts = ranks.run(size, synced, momentum)
    np.testing.assert_allclose(np.concatenate([p[0] for p in parts]), out, rtol=1e-9)
    np.testing.assert_allclose(np.concatenate([p[1] for p in parts]), grad, rtol=1e-8, atol=1e-10)
    for i, expected in enumerate(grads):
        np.testing.assert_allclose(sum(p[2][i] for p in parts), expected, rtol=1e-9)
    for part in parts:
        for found, expected in zip(part[3], buffers, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_conversion_and_one_process() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Sequential(nn.BatchNorm2d(2)))
    weight = model[1].weight
    model[2].eval()
    converted = dist.SyncBatchNorm.convert_sync_batchnorm(model)
    assert [type(m).__name__ for m in converted] == ["Linear", "SyncBatchNorm", "Sequential"]
    assert converted[1].weight is weight and isinstance(converted[2][0], dist.SyncBatchNorm)
    assert converted[1].training and not converted[2][0].training
    assert list(converted.state_dict()) == list(model.state_dict())
    x = c10.from_numpy(DATA[:, 0].astype("float32"))
    plain = nn.BatchNorm1d(4)
    np.testing.assert_array_equal(
        dist.SyncBatchNorm(4)(x).detach().numpy(), plain(x).detach().numpy()
    )
    single = dist.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3))
    assert isinstance(single, dist.SyncBatchNorm)
    unshifted = dist.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3, bias=False))
    assert [n for n, _ in unshifted.named_parameters()] == ["weight"]
    assert [n for n, _ in dist.SyncBatchNorm(3, bias=False).named_parameters()] == ["weight"]
    with pytest.raises(ValueError, match=r"SyncBatchNorm: got input of shape \[4\]"):
        single.train()._check_input(x[0])
