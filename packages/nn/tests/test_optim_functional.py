"""Steps on lists of tensors give what the optimizers give."""

from __future__ import annotations

import numpy as np
import pytest

import argand_aten as aten
from argand_autograd import no_grad
from argand_nn import optim
from argand_nn.optim import (
    adadelta,
    adafactor,
    adagrad,
    adam,
    adamax,
    asgd,
    muon,
    nadam,
    radam,
    rmsprop,
    rprop,
    sgd,
)

COMMON = {"lr": 0.1, "weight_decay": 0.01, "maximize": True}
BETAS = {"beta1": 0.8, "beta2": 0.9, "eps": 1e-6}


def both(options):
    """Options of a function, and those of the class."""
    shared = {k: v for k, v in options.items() if k not in ("beta1", "beta2")}
    return options, {**shared, "betas": (0.8, 0.9)} if "beta1" in options else shared


# Class, function, the state's names in the function's order, the function's options and the class's.
CASES = [
    (optim.Adadelta, adadelta.adadelta, "square_avg acc_delta step", *both({**COMMON, "rho": 0.8, "eps": 1e-6})),
    (optim.Adagrad, adagrad.adagrad, "sum step", *both({**COMMON, "lr_decay": 0.1, "eps": 1e-6})),
    (optim.Adam, adam.adam, "exp_avg exp_avg_sq max_exp_avg_sq step", *both({**COMMON, **BETAS, "amsgrad": True})),
    (optim.Adam, adam.adam, "exp_avg exp_avg_sq max_exp_avg_sq step", *both({**COMMON, **BETAS, "amsgrad": False, "fused": True})),
    (optim.AdamW, adam.adamw, "exp_avg exp_avg_sq max_exp_avg_sq step", *both({**COMMON, **BETAS, "amsgrad": False})),
    (optim.Adamax, adamax.adamax, "exp_avg exp_inf step", *both({**COMMON, **BETAS})),
    (optim.ASGD, asgd.asgd, "ax mu eta step", *both({**COMMON, "lambd": 0.1, "t0": 1.0, "alpha": 0.5})),
    (optim.NAdam, nadam.nadam, "exp_avg exp_avg_sq mu_product step", *both({**COMMON, **BETAS, "momentum_decay": 0.01, "decoupled_weight_decay": True})),
    (optim.RAdam, radam.radam, "exp_avg exp_avg_sq step", *both({**COMMON, **BETAS})),
    (optim.RMSprop, rmsprop.rmsprop, "square_avg grad_avg momentum_buffer step", *both({**COMMON, "alpha": 0.9, "eps": 1e-6, "momentum": 0.5, "centered": True})),
    (optim.RMSprop, rmsprop.rmsprop, "square_avg grad_avg momentum_buffer step", *both({**COMMON, "alpha": 0.9, "eps": 1e-6, "momentum": 0, "centered": False})),
    (optim.Rprop, rprop.rprop, "prev step_size step",
     {"etaminus": 0.5, "etaplus": 1.2, "step_size_min": 1e-6, "step_size_max": 50.0, "maximize": True}, {"maximize": True}),
]  # fmt: skip


def problem(complex_numbers=False):
    rng = np.random.default_rng(3)
    shapes = [(3, 2), (4,)]
    values = [rng.normal(size=s) for s in shapes]
    grads = [[rng.normal(size=s) for s in shapes] for _ in range(3)]
    if complex_numbers:
        values = [v + 1j * v[::-1] for v in values]
        grads = [[g - 1j * g[::-1] for g in step] for step in grads]
    tensors = [aten.tensor(v).requires_grad_() for v in values]
    return tensors, [[aten.tensor(g) for g in step] for step in grads]


def by_class(cls, options, steps, params):
    optimizer = cls(params, **options)
    for grads in steps:
        for p, g in zip(params, grads, strict=True):
            p.grad = g.clone()
        optimizer.step()
    return optimizer


@pytest.mark.parametrize("complex_numbers", [False, True])
@pytest.mark.parametrize(("cls", "function", "names", "given", "options"), CASES)
def test_a_step_on_lists_is_that_of_the_optimizer(
    cls, function, names, given, options, complex_numbers
):
    if complex_numbers and given.get("fused"):
        return
    expected, steps = problem(complex_numbers)
    reference = by_class(cls, options, steps, expected)
    params, _ = problem(complex_numbers)
    fresh = cls(params, **options)
    states = []
    for p in params:
        group = fresh.param_groups[0]
        states.append(fresh.init_state(p.detach(), group))
    lists = [[state[name] for state in states if name in state] for name in names.split()]
    for grads in steps:
        with no_grad():
            function(params, grads, *lists, **given)
    for p, e in zip(params, expected, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), e.detach().numpy(), rtol=1e-12)
    for name, values in zip(names.split(), lists, strict=True):
        for value, e in zip(values, expected, strict=False):
            np.testing.assert_allclose(value.numpy(), reference.state[e][name].numpy(), rtol=1e-12)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.9, False), (0.9, True)])
def test_sgd_puts_its_momentum_into_the_list(momentum, nesterov, fused):
    options = {**COMMON, "momentum": momentum, "dampening": 0.0, "nesterov": nesterov}
    expected, steps = problem()
    reference = by_class(optim.SGD, {**options, "fused": fused}, steps, expected)
    params, _ = problem()
    buffers = [None, None]
    for grads in steps:
        with no_grad():
            sgd.sgd(params, grads, buffers, fused=fused, **options)
    for p, e, buffer in zip(params, expected, buffers, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), e.detach().numpy(), rtol=1e-12)
        kept = reference.state[e].get("momentum_buffer")
        assert (buffer is None) == (kept is None)
        if kept is not None:
            np.testing.assert_allclose(buffer.numpy(), kept.numpy(), rtol=1e-12)


def test_steps_are_counted_by_tensors():
    (p, _), ((g, _), *_) = problem()
    with pytest.raises(RuntimeError, match="state_steps"):
        adamax.adamax([p], [g], [g.clone()], [g.clone()], [1], lr=0.1, weight_decay=0.0, **BETAS)
    with pytest.raises(RuntimeError, match="unscale"):
        adagrad.adagrad([p], [g], [g], [g], found_inf=g, lr=0.1, weight_decay=0.0, lr_decay=0.0, eps=0.1, maximize=False)  # fmt: skip


def test_adafactor():
    options = {"lr": 0.1, "beta2_decay": -0.7, "d": 1.5, "weight_decay": 0.01, "maximize": True}
    expected, steps = problem()
    optimizer = by_class(optim.Adafactor, {**options, "eps": (None, 1e-2)}, steps, expected)
    params, steps = problem()
    rows, columns = [aten.zeros(3, 1).double(), None], [aten.zeros(1, 2).double(), None]
    variances, counts = [None, aten.zeros(4).double()], [aten.tensor(0.0) for _ in params]
    for grads in steps:
        with no_grad():
            adafactor.adafactor(
                params, grads, rows, columns, variances, counts, eps1=None, eps2=1e-2, **options
            )
    for found, wanted in zip(params, expected, strict=True):
        assert found.tolist() == wanted.tolist()
    assert rows[0].tolist() == optimizer.state[expected[0]]["row_var"].tolist()
    assert [c.item() for c in counts] == [3, 3]
    with pytest.raises(AssertionError, match="Grad scaling"):
        adafactor.adafactor(
            [], [], [], [], [], [], eps1=None, eps2=0, found_inf=aten.ones(1), **options
        )


def test_muon():
    options = {
        "lr": 0.1, "weight_decay": 0.01, "momentum": 0.9, "nesterov": True, "ns_steps": 3,
        "ns_coefficients": (3.4, -4.7, 2.0), "eps": 1e-7, "adjust_lr_fn": "match_rms_adamw",
    }  # fmt: skip
    (expected, _), steps = problem()
    optimizer = by_class(optim.Muon, options, [step[:1] for step in steps], [expected])
    (param, _), steps = problem()
    mean = aten.zeros_like(param.detach())
    with no_grad():
        for grads in steps:
            muon.muon([param], grads[:1], [mean], has_complex=False, **options)
    assert param.tolist() == expected.tolist()
    assert mean.tolist() == optimizer.state[expected]["momentum_buffer"].tolist()
    with pytest.raises(ValueError, match="Complex"):
        muon.muon([], [], [], has_complex=True, **options)
