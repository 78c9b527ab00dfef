"""Schedulers: closed forms, composition and state."""

from __future__ import annotations

import math
import warnings

import pytest

import argand_aten as aten
import argand_nn as nn
import argand_nn.optim as optim
import argand_nn.optim.lr_scheduler as lrs


def sgd(lr=0.1, **options):
    return optim.SGD([nn.Parameter(aten.ones(2))], lr=lr, **options)


def rates(make, steps=20, optimizer=None):
    optimizer = sgd() if optimizer is None else optimizer
    scheduler = make(optimizer)
    result = []
    for _ in range(steps):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return result


def cosine(t, period, low=0.01, high=0.1):
    return low + (high - low) * (1 + math.cos(math.pi * t / period)) / 2


FORMS = {
    "lambda": (lambda o: lrs.LambdaLR(o, lambda e: 1 / (1 + e)), lambda e: 0.1 / (1 + e)),
    "multiplicative": (lambda o: lrs.MultiplicativeLR(o, lambda e: 0.8), lambda e: 0.1 * 0.8**e),
    "step": (lambda o: lrs.StepLR(o, 3, 0.5), lambda e: 0.1 * 0.5 ** (e // 3)),
    "multi step": (
        lambda o: lrs.MultiStepLR(o, [9, 4], 0.5),
        lambda e: 0.1 * 0.5 ** ((e >= 4) + (e >= 9)),
    ),
    "exponential": (lambda o: lrs.ExponentialLR(o, 0.9), lambda e: 0.1 * 0.9**e),
    "constant": (lambda o: lrs.ConstantLR(o, 0.25, 4), lambda e: 0.025 if e < 4 else 0.1),
    "linear": (
        lambda o: lrs.LinearLR(o, 0.2, 1.0, 5),
        lambda e: 0.1 * (0.2 + 0.8 * min(e, 5) / 5),
    ),
    "polynomial": (lambda o: lrs.PolynomialLR(o, 10, 2), lambda e: 0.1 * max(0, 1 - e / 10) ** 2),
    "cosine": (lambda o: lrs.CosineAnnealingLR(o, 6, 0.01), lambda e: cosine(e, 6)),
    "warm restarts": (
        lambda o: lrs.CosineAnnealingWarmRestarts(o, 5, eta_min=0.01),
        lambda e: cosine(e % 5, 5),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_closed_form(name):
    make, form = FORMS[name]
    assert rates(make) == pytest.approx([form(e) for e in range(20)], abs=1e-12)


def test_one_cycle():
    optimizer = sgd(momentum=0.9)
    seen = []
    scheduler = lrs.OneCycleLR(optimizer, max_lr=1.0, total_steps=11, pct_start=4 / 11)
    for step in range(11):
        group = optimizer.param_groups[0]
        seen.append((group["lr"], group["momentum"]))
        optimizer.step()
        if step < 10:
            scheduler.step()
    assert seen[0] == pytest.approx((1 / 25, 0.95))
    assert seen[3] == pytest.approx((1.0, 0.85))
    assert seen[-1] == pytest.approx((1 / 25 / 1e4, 0.95))
    assert seen[1][0] == pytest.approx(1 - (1 - 1 / 25) * (1 + math.cos(math.pi / 3)) / 2)
    scheduler.step()
    with pytest.raises(ValueError, match="step 12, expected at most total_steps 11"):
        scheduler.step()
    adam = optim.Adam([nn.Parameter(aten.ones(1))])
    scheduler = lrs.OneCycleLR(adam, 1.0, total_steps=10)
    assert scheduler.state_dict()["use_beta1"] is True
    assert adam.param_groups[0]["betas"] == pytest.approx((0.95, 0.999))


def test_reduce_on_plateau():
    optimizer = sgd(1.0)
    scheduler = lrs.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    seen = []
    for loss in [3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]:
        scheduler.step(loss)
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2]
    state = scheduler.state_dict()
    assert state["default_min_lr"] == 0.2 and state["mode_worse"] == math.inf
    optimizer.add_param_group(
        {"params": [nn.Parameter(aten.ones(2))], "lr": 1.0}
    )  # its least rate is the others'
    for _ in range(4):
        scheduler.step(1)
    assert optimizer.param_groups[1]["lr"] == 0.5 and scheduler.min_lrs == [0.2, 0.2]
    rising = lrs.ReduceLROnPlateau(sgd(), mode="max", threshold=0.1, threshold_mode="abs")
    assert rising._is_better(0)
    rising.best = 1.0
    assert not rising._is_better(1.05)
    assert rising._is_better(1.2)


def test_sequential_and_chained():
    warm = rates(
        lambda o: lrs.SequentialLR(
            o, [lrs.LinearLR(o, 0.1, 1.0, 4), lrs.CosineAnnealingLR(o, 6, 0.01)], [4]
        ),
        10,
    )
    expected = [0.1 * (0.1 + 0.9 * e / 4) for e in range(4)] + [cosine(e, 6) for e in range(6)]
    assert warm == pytest.approx(expected)
    both = rates(lambda o: lrs.ChainedScheduler([lrs.StepLR(o, 2), lrs.ExponentialLR(o, 0.5)]), 5)
    assert both == pytest.approx([0.1 * 0.1 ** (e // 2) * 0.5**e for e in range(5)])


@pytest.mark.parametrize("name", [*FORMS, "sequential"])
def test_state_round_trip(name):
    def make(o):
        if name == "sequential":
            return lrs.SequentialLR(o, [lrs.ConstantLR(o, 0.5, 3), lrs.ExponentialLR(o, 0.9)], [3])
        return FORMS[name][0](o)

    whole = rates(make, 14)
    first, second = sgd(), sgd()
    a = make(first)
    for _ in range(7):
        first.step()
        a.step()
    b = make(second)
    b.load_state_dict(a.state_dict())
    second.load_state_dict(first.state_dict())
    seen = []
    for _ in range(7):
        seen.append(second.param_groups[0]["lr"])
        second.step()
        b.step()
    assert seen == pytest.approx(whole[7:])


def test_groups_keep_their_own_rates():
    a, b = nn.Parameter(aten.ones(1)), nn.Parameter(aten.ones(1))
    optimizer = optim.SGD([{"params": [a]}, {"params": [b], "lr": 1.0}], lr=0.1)
    scheduler = lrs.LambdaLR(optimizer, [lambda e: 0.5**e, lambda e: 1.0])
    optimizer.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [0.05, 1.0]
    with pytest.raises(ValueError, match="got 1 functions, expected 2"):
        lrs.LambdaLR(optimizer, [lambda e: 1.0])


def test_warnings_and_errors():
    scheduler = lrs.StepLR(sgd(), 1)
    with pytest.warns(UserWarning, match="called before optimizer.step"):
        scheduler.step()
    with pytest.raises(TypeError, match="StepLR: got str, expected an Optimizer"):
        lrs.StepLR("sgd", 1)
    with pytest.raises(KeyError, match="initial_lr"):
        lrs.StepLR(sgd(), 1, last_epoch=3)
    with pytest.raises(ValueError, match="factor 2"):
        lrs.ConstantLR(sgd(), 2)
    with pytest.raises(ValueError, match="pct_start"):
        lrs.OneCycleLR(sgd(momentum=0.9), 1.0, 10, pct_start=3)
    with pytest.raises(ValueError, match="expected one milestone less"):
        lrs.SequentialLR(sgd(), [], [])
    with pytest.raises(ValueError, match="T_0 0"):
        lrs.CosineAnnealingWarmRestarts(sgd(), 0)
    with pytest.raises(ValueError, match="positive integer"):
        lrs.OneCycleLR(sgd(momentum=0.9), 1.0, 10.5)
    one = sgd()
    for make in (lambda s: lrs.SequentialLR(one, s, [3]), lrs.ChainedScheduler):
        with pytest.raises(ValueError, match="ReduceLROnPlateau as scheduler 1"):
            make([lrs.StepLR(one, 1), lrs.ReduceLROnPlateau(one)])
    one.step()
    with pytest.warns(UserWarning, match="got an epoch, which is deprecated"):
        lrs.StepLR(one, 1).step(4)
    with pytest.warns(UserWarning, match="got an epoch, which is deprecated"):
        lrs.ReduceLROnPlateau(one).step(1.0, epoch=4)


RESUMABLE = {
    "multiplicative": lambda o, last: lrs.MultiplicativeLR(o, lambda e: 0.8, last),
    "exponential": lambda o, last: lrs.ExponentialLR(o, 0.9, last),
    "linear": lambda o, last: lrs.LinearLR(o, 0.2, 1.0, 8, last),
    "polynomial": lambda o, last: lrs.PolynomialLR(o, 10, 2, last),
    "cosine": lambda o, last: lrs.CosineAnnealingLR(o, 6, 0.01, last),
    "step": lambda o, last: lrs.StepLR(o, 3, 0.5, last),
    "lambda": lambda o, last: lrs.LambdaLR(o, lambda e: 1 / (1 + e), last),
}


@pytest.mark.parametrize("name", RESUMABLE)
def test_resumes_at_the_rate_of_the_groups(name):
    """A scheduler made for a later epoch takes the rates that it finds as that epoch's."""
    whole = sgd()
    scheduler = RESUMABLE[name](whole, -1)
    expected = []
    for _ in range(9):
        whole.step()
        scheduler.step()
        expected.append(whole.param_groups[0]["lr"])
    resumed = sgd(lr=expected[3])
    resumed.param_groups[0]["initial_lr"] = 0.1
    scheduler = RESUMABLE[name](resumed, 3)
    assert rates(lambda o: scheduler, 6, resumed) == pytest.approx(expected[3:])


def test_tensor_rates_stay_tensors_of_their_own():
    optimizer = optim.Adam([nn.Parameter(aten.ones(2))], lr=aten.tensor(0.1))
    lr = optimizer.param_groups[0]["lr"]
    scheduler = lrs.ExponentialLR(optimizer, 0.5)
    before = scheduler.get_last_lr()
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is lr
    assert lr.item() == pytest.approx(0.05)
    assert before[0].item() == pytest.approx(0.1)
    assert optimizer.param_groups[0]["initial_lr"].item() == pytest.approx(0.1)
    assert scheduler.base_lrs == pytest.approx([0.1])


def test_chained_at_the_start_of_sequential():
    optimizer = sgd()
    chained = lrs.ChainedScheduler([lrs.ConstantLR(optimizer, 0.5, 2), lrs.StepLR(optimizer, 3)])
    scheduler = lrs.SequentialLR(optimizer, [chained, lrs.ConstantLR(optimizer, 0.3, 2)], [4])
    found = rates(lambda o: scheduler, 7, optimizer)
    assert found == pytest.approx([0.05, 0.05, 0.1, 0.01, 0.03, 0.03, 0.1])


def test_rates_are_asked_for_within_steps():
    optimizer = sgd()
    scheduler = lrs.ExponentialLR(optimizer, 0.5)
    with pytest.warns(UserWarning, match="get_last_lr"):
        assert scheduler.get_lr() == [0.05]
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.step()
        assert scheduler.get_last_lr() == [0.05]


class Halving:
    def __init__(self, base):
        self.base = base

    def __call__(self, x):
        return self.base ** (x - 1)


def test_state_of_a_scale_fn():
    first = lrs.CyclicLR(sgd(momentum=0.9), 0.01, 0.1, 4, scale_fn=Halving(0.5))
    state = first.state_dict()
    assert state["_scale_fn_custom"] == {"base": 0.5}
    second = lrs.CyclicLR(sgd(momentum=0.9), 0.01, 0.1, 4, scale_fn=Halving(0.1))
    second.load_state_dict(state)
    assert second.scale_fn(3) == 0.25
    assert state["_scale_fn_custom"] == {"base": 0.5}
    plain = lrs.CyclicLR(sgd(momentum=0.9), 0.01, 0.1, 4, scale_fn=lambda x: 0.5)
    plain.load_state_dict(plain.state_dict())
    assert plain.scale_fn(3) == 0.5


def test_cycles_state_has_the_ends_of_momentum():
    def scheduler(low):
        return lrs.CyclicLR(sgd(momentum=0.5), 0.01, 0.1, 2, base_momentum=low)

    first, second = scheduler(0.25), scheduler(0.75)
    second.load_state_dict(first.state_dict())
    for made in (first, second):
        made.optimizer.step()
        made.step()
        made.step()
        assert made.optimizer.param_groups[0]["momentum"] == pytest.approx(0.25)


def test_a_step_to_an_epoch_uses_the_subclasss_closed_form():
    class Warmup(lrs.LRScheduler):
        def get_lr(self):
            return [group["lr"] / 2 for group in self.optimizer.param_groups]

        def _get_closed_form_lr(self):
            return [base / 2**self.last_epoch for base in self.base_lrs]

    scheduler = Warmup(sgd(1.0))
    with pytest.warns(UserWarning, match="epoch"):
        scheduler.step(3)
    assert scheduler.get_last_lr() == [0.125]


def test_cyclic_schedulers_start_in_the_middle():
    optimizer = sgd(1.0, momentum=0.9)
    optimizer.param_groups[0]["initial_lr"] = 0.5
    scheduler = lrs.CyclicLR(optimizer, 0.5, 1.0, 5, last_epoch=2)
    assert scheduler.get_last_lr() == [pytest.approx(0.8)]
    assert optimizer.param_groups[0]["momentum"] == pytest.approx(0.84)
    scheduler = lrs.CosineAnnealingWarmRestarts(optimizer, 3, 2, last_epoch=8)
    assert (scheduler.T_cur, scheduler.T_i) == (0, 6) and scheduler.get_last_lr() == [0.5]
