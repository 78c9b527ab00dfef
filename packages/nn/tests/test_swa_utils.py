"""Averages of models, their schedule and their statistics."""

from __future__ import annotations

import math

import numpy as np
import pytest

import argand_aten as aten
import argand_nn as nn
from argand_nn import optim
from argand_nn.optim import swa_utils


def weights(model):
    return np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, lambda rows: np.mean(rows, 0)),
        ({"multi_avg_fn": swa_utils.get_swa_multi_avg_fn()}, lambda rows: np.mean(rows, 0)),
        ({"avg_fn": swa_utils.get_swa_avg_fn()}, lambda rows: np.mean(rows, 0)),
        ({"avg_fn": swa_utils.get_ema_avg_fn(0.8)}, "ema"),
        ({"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.8)}, "ema"),
    ],
)
def test_averages(options, expected):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    averaged = swa_utils.AveragedModel(model, **options)
    rows = []
    rng = np.random.default_rng(0)
    for _ in range(5):
        for p in model.parameters():
            p.detach().copy_(aten.tensor(rng.standard_normal(tuple(p.shape)).astype(np.float32)))
        model(aten.randn(4, 3))
        averaged.update_parameters(model)
        rows.append(weights(model))
    if expected == "ema":
        value = rows[0]
        for row in rows[1:]:
            value = 0.8 * value + 0.2 * row
    else:
        value = expected(rows)
    np.testing.assert_allclose(weights(averaged.module), value, rtol=1e-5)
    assert averaged.n_averaged.item() == 5
    np.testing.assert_array_equal(  # buffers are copied
        averaged.module[1].running_mean.numpy(), model[1].running_mean.numpy()
    )
    x = aten.randn(4, 3)
    averaged.eval()
    np.testing.assert_array_equal(averaged(x).detach().numpy(), averaged.module(x).detach().numpy())
    assert list(averaged.state_dict())[0] == "n_averaged"


def test_averages_of_buffers():
    model = nn.BatchNorm1d(2)
    averaged = swa_utils.AveragedModel(model, use_buffers=True)
    rows = []
    for value in (1.0, 2.0, 6.0):
        model.running_mean.fill_(value)
        averaged.update_parameters(model)
        rows.append(value)
    np.testing.assert_allclose(averaged.module.running_mean.numpy(), [3.0, 3.0], rtol=1e-6)


def test_update_bn_takes_plain_means():
    model = nn.Sequential(nn.BatchNorm1d(2, momentum=0.3), nn.Linear(2, 2)).eval()
    batches = [
        np.random.default_rng(i).standard_normal((5, 2)).astype(np.float32) for i in range(3)
    ]
    swa_utils.update_bn([(aten.tensor(b), "label") for b in batches], model)
    means, variances = (
        [f(b, 0) for b in batches] for f in (np.mean, lambda b, d: b.var(d, ddof=1))
    )
    np.testing.assert_allclose(
        model[0].running_mean.numpy(), np.mean(means, 0), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(model[0].running_var.numpy(), np.mean(variances, 0), rtol=1e-4)
    assert model[0].momentum == 0.3 and not model.training


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_swalr_reaches_the_rate(strategy):
    optimizer = optim.SGD([nn.Parameter(aten.ones(1))], lr=1.0)
    scheduler = swa_utils.SWALR(optimizer, 0.2, anneal_epochs=4, anneal_strategy=strategy)
    rates = []
    for _ in range(6):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    shares = [min(1.0, n / 4) for n in range(6)]
    if strategy == "cos":
        shares = [(1 - math.cos(math.pi * share)) / 2 for share in shares]
    np.testing.assert_allclose(rates, [1.0 - 0.8 * share for share in shares], rtol=1e-9)
    with pytest.raises(ValueError, match="SWALR: got anneal_strategy 'step'"):
        swa_utils.SWALR(optimizer, 0.2, anneal_strategy="step")


@pytest.mark.parametrize("mode", ["triangular", "triangular2", "exp_range"])
def test_cyclic_lr(mode):
    optimizer = optim.Adam([nn.Parameter(aten.ones(1))], lr=7.0)
    scheduler = optim.lr_scheduler.CyclicLR(
        optimizer, 0.1, 0.5, step_size_up=2, step_size_down=4, mode=mode, gamma=0.9
    )
    for step in range(14):
        cycle, place = divmod(step, 6)
        height = place / 2 if place <= 2 else (6 - place) / 4
        height *= {"triangular": 1.0, "triangular2": 0.5**cycle, "exp_range": 0.9**step}[mode]
        group = optimizer.param_groups[0]
        np.testing.assert_allclose(group["lr"], 0.1 + 0.4 * height, rtol=1e-9)
        np.testing.assert_allclose(group["betas"][0], 0.9 - 0.1 * height, rtol=1e-9)
        optimizer.step()
        scheduler.step()
