"""Modules that learn the sizes of their inputs from the first call."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
from argand_nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

CASES = [
    (lambda: nn.LazyLinear(3), nn.Linear, (2, 5), {"weight": [3, 5], "bias": [3]}),
    (lambda: nn.LazyLinear(3, bias=False), nn.Linear, (5,), {"weight": [3, 5]}),
    (
        lambda: nn.LazyConv2d(4, (3, 2), 2, groups=2),
        nn.Conv2d,
        (2, 6, 8, 8),
        {"weight": [4, 3, 3, 2], "bias": [4]},
    ),
    (lambda: nn.LazyConv1d(4, 3, bias=False), nn.Conv1d, (6, 8), {"weight": [4, 6, 3]}),
    (
        lambda: nn.LazyBatchNorm2d(momentum=0.5),
        nn.BatchNorm2d,
        (2, 6, 3, 3),
        {
            "weight": [6],
            "bias": [6],
            "running_mean": [6],
            "running_var": [6],
            "num_batches_tracked": [],
        },
    ),
    (
        lambda: nn.LazyInstanceNorm1d(track_running_stats=False),
        nn.InstanceNorm1d,
        (6, 8),
        {"weight": [6], "bias": [6]},
    ),
]
ids = [case[1].__name__ for case in CASES]


def shapes(module):
    return {name: list(value.shape) for name, value in module.state_dict().items()}


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_first_call(case):
    make, kind, shape, expected = case
    module = make().double()
    assert module.has_uninitialized_params() and "0" in repr(module)
    twin = copy.deepcopy(module)
    x = aten.tensor(np.random.default_rng(0).standard_normal(shape))
    out = module(x)
    assert type(module) is kind and shapes(module) == expected
    assert all(type(p) is nn.Parameter and p.dtype == c10.float64 for p in module.parameters())
    assert all(p.requires_grad for p in module.parameters())
    assert not module._forward_pre_hooks
    # The copy is as lazy as before, and takes the state of the other.
    assert twin.has_uninitialized_params()
    twin.load_state_dict(make().double().state_dict())
    assert twin.has_uninitialized_params()
    twin.load_state_dict(module.state_dict())
    assert type(twin) is not kind and shapes(twin) == expected
    for a, b in zip(module.state_dict().values(), twin.state_dict().values(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    twin.eval()
    module.eval()
    np.testing.assert_array_equal(module(x).detach().numpy(), twin(x).detach().numpy())
    assert repr(twin) == repr(module) and out.shape == module(x).shape


def test_uninitialized_tensors():
    parameter = UninitializedParameter(dtype=c10.float64)
    assert is_lazy(parameter) and not is_lazy(nn.Parameter(aten.ones(1)))
    with pytest.raises(ValueError, match="add: got an uninitialized parameter"):
        parameter + 1
    with pytest.raises(RuntimeError, match="got a request for its shape"):
        parameter.shape  # noqa: B018
    parameter.materialize((2, 3))
    assert type(parameter) is nn.Parameter and parameter.shape == (2, 3)
    assert parameter.dtype == c10.float64 and parameter.requires_grad
    buffer = UninitializedBuffer(persistent=False)
    buffer.materialize((4,), dtype=c10.int64)
    assert type(buffer) is nn.Buffer and not buffer.persistent and buffer.dtype == c10.int64


def test_in_models():
    model = nn.Sequential(nn.LazyConv1d(4, 3), nn.LazyBatchNorm1d(), nn.Flatten(), nn.LazyLinear(2))
    assert len(model.state_dict()) == 9
    x = aten.randn(5, 3, 10)
    model(x).sum().backward()
    assert [type(m) for m in model] == [nn.Conv1d, nn.BatchNorm1d, nn.Flatten, nn.Linear]
    assert all(p.grad is not None for p in model.parameters())
    with pytest.raises(ValueError, match="LazyConv1d: got 5 output channels, expected a multiple"):
        nn.LazyConv1d(5, 3, groups=2)
    with pytest.raises(RuntimeError, match="LazyConv2d: got input of shape"):
        nn.LazyConv2d(4, 3)(x[0, 0])


def test_lazy_modules_are_pickled_before_their_first_call():
    model = nn.Sequential(nn.LazyLinear(3, dtype=c10.float64), nn.LazyBatchNorm1d())
    loaded = pickle.loads(pickle.dumps(model))
    assert is_lazy(loaded[0].weight) and loaded[0].weight.dtype == c10.float64
    assert is_lazy(loaded[1].running_mean) and loaded[1].running_mean.persistent
    loaded.double()(aten.ones(2, 5, dtype=c10.float64))
    assert loaded[0].weight.shape == (3, 5)
    assert not UninitializedBuffer(persistent=False).__reduce_ex__(4)[1][3]
