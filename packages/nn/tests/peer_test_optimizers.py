"""Optimizers, schedulers and averages against PyTorch, from equal weights and inputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import argand_aten as aten
import argand_nn as nn
import argand_nn.optim as optim

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def close(ours, theirs, rtol=1e-4, atol=4e-6):
    """`atol` is of the largest element where that exceeds 1: the others are sums of such."""
    expected = theirs.detach().numpy()
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=rtol, atol=atol * scale)


def models(*layers):
    """The same model in both libraries, with equal weights."""
    ours = nn.Sequential(*[getattr(nn, name)(*args) for name, *args in layers])
    theirs = torch.nn.Sequential(*[getattr(torch.nn, name)(*args) for name, *args in layers])
    theirs.load_state_dict(
        {k: torch.tensor(v.numpy().copy()) for k, v in ours.state_dict().items()}
    )
    return ours, theirs


LAYERS = (("Linear", 4, 37), ("Tanh",), ("Linear", 37, 3))
FUSED = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.9}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.2, "maximize": True}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.01, "amsgrad": True, "maximize": True, "betas": (0.8, 0.95)}),
]
LOOPS = [
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {}),
    (
        "Adafactor",
        {"lr": 0.1, "weight_decay": 0.1, "eps": (1e-6, 1e-2), "d": 2.0, "maximize": True},
    ),
    ("Adagrad", {}),
    (
        "Adagrad",
        {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1, "maximize": True},
    ),
    ("Adamax", {}),
    ("Adamax", {"betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("ASGD", {}),
    ("ASGD", {"lambd": 0.1, "alpha": 0.5, "t0": 3, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "momentum_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "betas": (0.9, 0.99)}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.5, "centered": True, "alpha": 0.9, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"etas": (0.4, 1.5), "step_sizes": (1e-3, 0.1), "maximize": True}),
]


def train(ours, theirs, step, their_step, count, dtype=np.float32):
    for _ in range(count):
        x = normal(8, 4).astype(dtype)
        for model, optimizer, data in (
            (ours, step, aten.tensor(x)),
            (theirs, their_step, torch.tensor(x)),
        ):

            def closure(model=model, optimizer=optimizer, data=data):
                optimizer.zero_grad()
                out = model(data)
                loss = (out * out).mean()
                loss.backward()
                return loss

            optimizer.step(closure)


def check_state(ours, theirs, rtol=1e-4, atol=2e-6):
    """Equal state, under equal names; equal options."""
    mine, other = ours.state_dict(), theirs.state_dict()
    assert list(mine["state"]) == list(other["state"])
    for number, entries in other["state"].items():
        assert set(mine["state"][number]) == set(entries)
        for key, value in entries.items():
            found = mine["state"][number][key]
            if isinstance(value, torch.Tensor):
                assert str(found.dtype) == str(value.dtype).replace("torch", "argand"), key
                close(found, value, rtol, atol)
    for group, expected in zip(mine["param_groups"], other["param_groups"], strict=True):
        assert set(group) == set(expected)


@pytest.mark.parametrize("case", FUSED, ids=str)
@pytest.mark.parametrize("fused", [None, False, True])
def test_fused_optimizer(case, fused):
    name, options = case
    ours, theirs = models(*LAYERS)
    step = getattr(optim, name)(ours.parameters(), fused=fused, **options)
    their_step = getattr(torch.optim, name)(theirs.parameters(), foreach=False, **options)
    train(ours, theirs, step, their_step, 10)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(mine, other)
    check_state(step, their_step)


@pytest.mark.parametrize("case", LOOPS, ids=str)
@pytest.mark.parametrize("capturable", [False, True])
def test_loop_optimizer(case, capturable):
    name, options = case
    ours, theirs = models(*LAYERS)
    extra = {"capturable": True} if capturable else {}
    if capturable and name in ("Adafactor", "Adagrad"):
        pytest.skip("no such option")
    step = getattr(optim, name)(ours.parameters(), **options, **extra)
    their_step = getattr(torch.optim, name)(theirs.parameters(), foreach=False, **options)
    train(ours, theirs, step, their_step, 10)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(mine, other)
    check_state(step, their_step)
    again = getattr(optim, name)(ours.parameters(), **options, **extra)
    again.load_state_dict(step.state_dict())
    train(ours, theirs, again, their_step, 2)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(mine, other)


@pytest.mark.parametrize("case", FUSED + LOOPS, ids=str)
def test_float64(case):
    """Every digit, and states in the same order."""
    name, options = case
    ours, theirs = (model.double() for model in models(*LAYERS))
    step = getattr(optim, name)(ours.parameters(), **options)
    their_step = getattr(torch.optim, name)(theirs.parameters(), foreach=False, **options)
    train(ours, theirs, step, their_step, 5, np.float64)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(mine, other, 1e-9, 1e-11)
    check_state(step, their_step, 1e-9, 1e-11)
    mine, other = step.state_dict()["state"], their_step.state_dict()["state"]
    assert [list(state) for state in mine.values()] == [list(state) for state in other.values()]


@pytest.mark.parametrize(
    "case",
    [c for c in FUSED + LOOPS if not (c[0] == "Adafactor" or c[1].get("amsgrad"))],
    ids=str,
)
def test_complex_parameters(case):
    name, options = case
    start, target = normal(5, 3, 2).view(np.complex64), normal(5, 3, 2).view(np.complex64)
    results = []
    for library, module in ((aten, optim), (torch, torch.optim)):
        p = library.tensor(start).requires_grad_()
        optimizer = getattr(module, name)([p], foreach=False, **options)
        for _ in range(5):
            optimizer.zero_grad()
            difference = p - library.tensor(target)
            library.abs(difference * difference).sum().backward()
            optimizer.step()
        results.append(p)
    close(*results)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("history", [2, 100])
def test_lbfgs(search, history):
    ours, theirs = (model.double() for model in models(*LAYERS))
    options = {"lr": 0.3, "max_iter": 7, "history_size": history, "line_search_fn": search}
    step = optim.LBFGS(ours.parameters(), **options)
    their_step = torch.optim.LBFGS(theirs.parameters(), **options)
    train(ours, theirs, step, their_step, 4, np.float64)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(mine, other, 1e-6, 1e-8)
    assert set(step.state_dict()["state"][0]) == set(their_step.state_dict()["state"][0])
    for key in ("func_evals", "n_iter"):
        assert step.state_dict()["state"][0][key] == their_step.state_dict()["state"][0][key]


@pytest.mark.parametrize("directions", [4, 10])
def test_lbfgs_rosenbrock(directions):
    """A curved valley, where the line search has to bracket and to zoom, and calls run out within it."""
    paths = []
    for library, module in ((aten, optim), (torch, torch.optim)):
        p = library.tensor(np.array([-1.2, 1.0])).requires_grad_()
        optimizer = module.LBFGS([p], max_iter=directions, line_search_fn="strong_wolfe")
        losses = []

        def closure(p=p, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] * p[0]) ** 2
            loss.backward()
            return loss

        for _ in range(20):
            losses.append(float(optimizer.step(closure)))
        paths.append((losses, optimizer.state_dict()["state"][0]["func_evals"]))
    np.testing.assert_allclose(paths[0][0], paths[1][0], rtol=1e-6, atol=1e-14)
    assert paths[0][1] == paths[1][1]
    assert paths[0][0][-1] < 1e-8


@pytest.mark.parametrize(
    "options",
    [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "lr": 0.1}, {"ns_steps": 3}],
    ids=str,
)
def test_muon(options):
    ours, theirs = models(*LAYERS)
    step = optim.Muon([p for p in ours.parameters() if p.dim() == 2], **options)
    their_step = torch.optim.Muon([p for p in theirs.parameters() if p.dim() == 2], **options)
    train(ours, theirs, step, their_step, 3)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(mine, other, 1e-2, 2e-3)  # directions are computed in bfloat16
    assert set(step.state_dict()["param_groups"][0]) == set(
        their_step.state_dict()["param_groups"][0]
    )


def test_checkpoint_of_the_peer():
    """Its optimizers' states load, and training goes on alike."""
    for name, options in (FUSED[4], *LOOPS):
        ours, theirs = models(*LAYERS)
        step = getattr(optim, name)(ours.parameters(), **options)
        their_step = getattr(torch.optim, name)(theirs.parameters(), foreach=False, **options)
        train(ours, theirs, step, their_step, 2)
        state = their_step.state_dict()
        state["state"] = {
            number: {
                k: aten.tensor(v.numpy()) if isinstance(v, torch.Tensor) else v
                for k, v in entries.items()
            }
            for number, entries in state["state"].items()
        }
        step.load_state_dict(state)
        train(ours, theirs, step, their_step, 2)
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            close(mine, other)


SCHEDULERS = {
    "lambda": lambda m, o: m.LambdaLR(o, lambda e: 0.9**e),
    "multiplicative": lambda m, o: m.MultiplicativeLR(o, lambda e: 0.9),
    "step": lambda m, o: m.StepLR(o, 3),
    "multi step": lambda m, o: m.MultiStepLR(o, [3, 3, 10]),
    "exponential": lambda m, o: m.ExponentialLR(o, 0.9),
    "constant": lambda m, o: m.ConstantLR(o, 0.5, 4),
    "linear": lambda m, o: m.LinearLR(o, 0.5, 1.0, 4),
    "polynomial": lambda m, o: m.PolynomialLR(o, 7, 2.0),
    "cosine": lambda m, o: m.CosineAnnealingLR(o, 7, 0.01),
    "warm restarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "one cycle": lambda m, o: m.OneCycleLR(o, 1.0, 41),
    "one cycle, three phases": lambda m, o: m.OneCycleLR(
        o, 1.0, 41, three_phase=True, anneal_strategy="linear"
    ),
    "cyclic": lambda m, o: m.CyclicLR(o, 0.01, 0.1, 3, 5),
    "cyclic, halved": lambda m, o: m.CyclicLR(o, 0.01, 0.1, 4, mode="triangular2"),
    "cyclic, exponential": lambda m, o: m.CyclicLR(
        o, 0.01, 0.1, 4, mode="exp_range", gamma=0.95, cycle_momentum=False
    ),
    "cyclic, own scale": lambda m, o: m.CyclicLR(
        o, 0.01, 0.1, 4, scale_fn=lambda n: 1 / (1 + n), scale_mode="iterations"
    ),
    "sequential": lambda m, o: m.SequentialLR(
        o,
        [m.LinearLR(o, 0.1, 1.0, 5), m.CosineAnnealingLR(o, 20), m.ExponentialLR(o, 0.9)],
        [5, 25],
    ),
    "chained": lambda m, o: m.ChainedScheduler([m.ConstantLR(o, 0.1, 3), m.ExponentialLR(o, 0.9)]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_scheduler(name, optimizer):
    def run(library, parameter):
        options = {"momentum": 0.9} if optimizer == "SGD" else {}
        chosen = getattr(library, optimizer)([parameter], lr=0.1, **options)
        scheduler = SCHEDULERS[name](library.lr_scheduler, chosen)
        rows = []
        for _ in range(40):
            group = chosen.param_groups[0]
            rows.append([group["lr"], group.get("momentum", 0.0), *group.get("betas", ())])
            assert scheduler.get_last_lr() == [group["lr"]]
            chosen.step()
            scheduler.step()
        return rows

    ours = run(optim, nn.Parameter(aten.ones(2)))
    theirs = run(torch.optim, torch.nn.Parameter(torch.ones(2)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in SCHEDULERS if n not in ("chained", "sequential")])
def test_a_scheduler_s_state_is_known_to_the_other(name):
    def start(library, parameter):
        chosen = library.SGD([parameter], lr=0.1, momentum=0.9)
        return SCHEDULERS[name](library.lr_scheduler, chosen)

    ours = start(optim, nn.Parameter(aten.ones(2)))
    theirs = start(torch.optim, torch.nn.Parameter(torch.ones(2)))
    for _ in range(6):
        ours.step()
    state = ours.state_dict()
    assert state.keys() <= theirs.state_dict().keys()
    theirs.load_state_dict(dict(state))
    again = start(optim, nn.Parameter(aten.ones(2)))
    again.load_state_dict(theirs.state_dict())
    for scheduler in (theirs, again):
        for mine, other in zip(
            scheduler.optimizer.param_groups, ours.optimizer.param_groups, strict=True
        ):
            mine["lr"] = other["lr"]
    for _ in range(6):
        for scheduler in (ours, theirs, again):
            scheduler.step()
        assert ours.get_last_lr() == pytest.approx(theirs.get_last_lr(), rel=1e-9)
        assert ours.get_last_lr() == pytest.approx(again.get_last_lr(), rel=1e-12)


def test_reduce_on_plateau():
    a = optim.SGD([nn.Parameter(aten.ones(2))], lr=0.1)
    b = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    options = {"patience": 2, "cooldown": 1, "min_lr": 1e-5}
    ours = optim.lr_scheduler.ReduceLROnPlateau(a, **options)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(b, **options)
    for epoch in range(30):
        ours.step(max(5, 20 - epoch))
        theirs.step(max(5, 20 - epoch))
        assert a.param_groups[0]["lr"] == pytest.approx(b.param_groups[0]["lr"], rel=1e-9)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_swalr(strategy):
    rows = []
    for library, parameter in ((optim, nn.Parameter(aten.ones(2))), (torch.optim, torch.ones(2))):
        chosen = library.SGD([parameter], lr=0.1)
        before = library.lr_scheduler.ExponentialLR(chosen, 0.9)
        scheduler = library.swa_utils.SWALR(chosen, 0.05, 6, strategy)
        rates = []
        for epoch in range(14):
            chosen.step()
            (before if epoch < 4 else scheduler).step()
            rates.append(chosen.param_groups[0]["lr"])
        rows.append(rates)
    np.testing.assert_allclose(*rows, rtol=1e-6)


@pytest.mark.parametrize("kind", ["default", "ema", "multi ema", "own"])
@pytest.mark.parametrize("use_buffers", [False, True])
def test_averaged_model(kind, use_buffers):
    ours, theirs = models(("Linear", 4, 3), ("BatchNorm1d", 3))
    averages = []
    for library, model in ((optim, ours), (torch.optim, theirs)):
        utils = library.swa_utils
        options = {
            "default": {},
            "ema": {"avg_fn": utils.get_ema_avg_fn(0.9)},
            "multi ema": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.9)},
            "own": {"avg_fn": lambda average, value, count: average + value * count},
        }[kind]
        averages.append(utils.AveragedModel(model, use_buffers=use_buffers, **options))
    for _ in range(4):
        x = normal(6, 4)
        ours(aten.tensor(x))
        theirs(torch.tensor(x))
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            change = normal(*b.shape)
            a.detach().add_(aten.tensor(change))
            b.detach().add_(torch.tensor(change))
        averages[0].update_parameters(ours)
        averages[1].update_parameters(theirs)
    mine, other = averages[0].state_dict(), averages[1].state_dict()
    assert list(mine) == list(other)
    for key in other:
        if not (kind == "multi ema" and key.endswith("num_batches_tracked")):
            close(mine[key], other[key], 1e-5, 1e-5)
    batches = [normal(6, 4) for _ in range(3)]
    optim.swa_utils.update_bn([aten.tensor(b) for b in batches], averages[0])
    torch.optim.swa_utils.update_bn([torch.tensor(b) for b in batches], averages[1])
    for mine, other in zip(averages[0].buffers(), averages[1].buffers(), strict=True):
        close(mine, other, 1e-5, 1e-5)
