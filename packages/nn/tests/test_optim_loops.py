"""Optimizers that loop over parameters: against their papers' formulas in NumPy, and their modes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
import argand_nn.optim as optim


def zeros(state, *names):
    """Entries of `state`, which begin as 0."""
    return [state.get(name, 0.0) for name in names]


def adadelta(p, g, s, n, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0):
    g = g + weight_decay * p
    square, steps = zeros(s, "square", "steps")
    s["square"] = square = rho * square + (1 - rho) * g * g
    step = np.sqrt(steps + eps) / np.sqrt(square + eps) * g
    s["steps"] = rho * steps + (1 - rho) * step * step
    return p - lr * step


def adafactor(p, g, s, n, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0):
    floor = np.finfo(p.dtype).eps if eps[0] is None else eps[0]
    weight = n**beta2_decay
    size = max(eps[1], np.sqrt(np.mean(p * p))) * min(lr, 1 / math.sqrt(n))
    names = ("row", "column") if p.ndim > 1 else ("all",)
    values = (g * g,) if p.ndim < 2 else ((g * g).mean(-1), (g * g).mean(-2))
    for name, old, value in zip(names, zeros(s, *names), values, strict=True):
        s[name] = (1 - weight) * old + weight * value
    squares = s["all"] if p.ndim < 2 else np.outer(s["row"], s["column"]) / s["row"].mean()
    change = g / np.sqrt(np.maximum(squares, floor * floor))
    change = change / max(1.0, np.sqrt(np.mean(change * change)) / d)
    return p * (1 - lr * weight_decay) - size * change


def adagrad(p, g, s, n, lr=1e-2, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0,
            eps=1e-10):  # fmt: skip
    g = g + weight_decay * p
    s["sum"] = s.get("sum", initial_accumulator_value) + g * g
    return p - lr / (1 + (n - 1) * lr_decay) * g / (np.sqrt(s["sum"]) + eps)


def adamax(p, g, s, n, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    g = g + weight_decay * p
    mean, largest = zeros(s, "mean", "largest")
    s["mean"] = betas[0] * mean + (1 - betas[0]) * g
    s["largest"] = np.maximum(betas[1] * largest, np.abs(g) + eps)
    return p - lr / (1 - betas[0] ** n) * s["mean"] / s["largest"]


def asgd(p, g, s, n, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0):
    g = g + weight_decay * p
    rate = lr / (1 + lambd * lr * (n - 1)) ** alpha if n > 1 else lr
    return p * (1 - lambd * rate) - rate * g


def nadam(p, g, s, n, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3,
          decoupled_weight_decay=False):  # fmt: skip
    p, g = decayed(p, g, lr, weight_decay, decoupled_weight_decay)
    mu, following = (betas[0] * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in (n, n + 1))
    s["product"] = s.get("product", 1.0) * mu
    mean, square = means(s, g, betas)
    scale = np.sqrt(square / (1 - betas[1] ** n)) + eps
    ahead = following * mean / (1 - s["product"] * following)
    return p - lr * (ahead + (1 - mu) * g / (1 - s["product"])) / scale


def radam(p, g, s, n, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0,
          decoupled_weight_decay=False):  # fmt: skip
    p, g = decayed(p, g, lr, weight_decay, decoupled_weight_decay)
    mean, square = means(s, g, betas)
    mean = mean / (1 - betas[0] ** n)
    limit = 2 / (1 - betas[1]) - 1
    rho = limit - 2 * n * betas[1] ** n / (1 - betas[1] ** n)
    if rho <= 5:
        return p - lr * mean
    rectified = (rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)
    return p - lr * mean * math.sqrt(rectified * (1 - betas[1] ** n)) / (np.sqrt(square) + eps)


def rmsprop(p, g, s, n, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0,
            centered=False):  # fmt: skip
    g = g + weight_decay * p
    mean, square = means(s, g, (alpha, alpha))
    step = g / (np.sqrt(square - mean * mean if centered else square) + eps)
    s["step"] = momentum * s.get("step", 0.0) + step
    return p - lr * s["step"]


def rprop(p, g, s, n, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50)):
    agreement = np.sign(g * s.get("before", 0.0))
    factor = np.where(agreement > 0, etas[1], np.where(agreement < 0, etas[0], 1.0))
    s["size"] = np.clip(s.get("size", lr) * factor, *step_sizes)
    s["before"] = np.where(agreement < 0, 0.0, g)
    return p - np.sign(s["before"]) * s["size"]


def decayed(p, g, lr, weight_decay, decoupled):
    return (p * (1 - lr * weight_decay), g) if decoupled else (p, g + weight_decay * p)


def means(s, g, betas):
    mean, square = zeros(s, "mean", "square")
    s["mean"] = betas[0] * mean + (1 - betas[0]) * g
    s["square"] = betas[1] * square + (1 - betas[1]) * g * g
    return s["mean"], s["square"]


CASES = [
    (optim.Adadelta, adadelta, {}),
    (optim.Adadelta, adadelta, {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1}),
    (optim.Adafactor, adafactor, {}),
    (optim.Adafactor, adafactor, {"lr": 0.3, "weight_decay": 0.1, "eps": (0.1, 0.5), "d": 1.5}),
    (optim.Adagrad, adagrad, {}),
    (
        optim.Adagrad,
        adagrad,
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2},
    ),
    (optim.Adamax, adamax, {}),
    (optim.Adamax, adamax, {"betas": (0.8, 0.9), "weight_decay": 0.1}),
    (optim.ASGD, asgd, {}),
    (optim.ASGD, asgd, {"lr": 0.1, "lambd": 0.5, "alpha": 0.6, "t0": 2, "weight_decay": 0.1}),
    (optim.NAdam, nadam, {}),
    (optim.NAdam, nadam, {"weight_decay": 0.1, "momentum_decay": 0.3}),
    (optim.NAdam, nadam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.RAdam, radam, {"betas": (0.9, 0.99)}),
    (optim.RAdam, radam, {"betas": (0.9, 0.9), "weight_decay": 0.1}),
    (optim.RAdam, radam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    (optim.RMSprop, rmsprop, {}),
    (optim.RMSprop, rmsprop, {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
    (optim.Rprop, rprop, {}),
    (optim.Rprop, rprop, {"lr": 0.1, "etas": (0.3, 2.0), "step_sizes": (0.05, 0.2)}),
]
HAS_MODES = [case for case in CASES if case[0] is not optim.Adafactor]
ids = [f"{kind.__name__}-{options}" for kind, _, options in CASES]
mode_ids = [f"{kind.__name__}-{options}" for kind, _, options in HAS_MODES]


def steps_of(kind, options, starts, grads, **extra):
    """Parameters after one step for each entry of `grads` (a list of lists of arrays)."""
    params = [nn.Parameter(aten.tensor(start)) for start in starts]
    optimizer = kind(params, **options, **extra)
    for arrays in grads:
        for p, array in zip(params, arrays, strict=True):
            p.grad = aten.tensor(array)
        optimizer.step()
    return [p.detach().numpy() for p in params]


def data(count, seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(3, 5), (7,), ()]
    return [rng.standard_normal(s) for s in shapes], [
        [rng.standard_normal(s) for s in shapes] for _ in range(count)
    ]


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_formula(case, maximize):
    kind, formula, options = case
    starts, grads = data(8)
    found = steps_of(kind, options, starts, grads, maximize=maximize)
    for i, expected in enumerate(starts):
        state: dict = {}
        for n, arrays in enumerate(grads, 1):
            g = -arrays[i] if maximize else arrays[i]
            expected = formula(expected, g, state, n, **options)
        # Some state is float32, as in PyTorch.
        np.testing.assert_allclose(found[i], expected, rtol=2e-6, atol=1e-8)


@pytest.mark.parametrize("case", HAS_MODES, ids=mode_ids)
def test_complex_parameters_step_as_pairs_of_reals(case):
    kind, _, options = case
    rng = np.random.default_rng(3)
    start, grads = rng.standard_normal((4, 2)), rng.standard_normal((3, 4, 2))

    def as_complex(array):
        return array.view(np.complex128)[..., 0]

    found = steps_of(kind, options, [as_complex(start)], [[as_complex(g)] for g in grads])
    expected = steps_of(kind, options, [start], [[g] for g in grads])
    np.testing.assert_allclose(found[0], as_complex(expected[0].copy()), rtol=1e-12)


@pytest.mark.parametrize("case", HAS_MODES, ids=mode_ids)
def test_capturable_and_tensor_rates_change_nothing(case):
    kind, _, options = case
    starts, grads = data(4)
    expected = steps_of(kind, options, starts, grads)
    if kind is not optim.Adagrad:
        found = steps_of(kind, options, starts, grads, capturable=True)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    lr = options.get("lr", kind([nn.Parameter(aten.ones(1))]).defaults["lr"])
    options = {**options, "lr": aten.tensor(lr, dtype=c10.float64)}
    for a, b in zip(steps_of(kind, options, starts, grads), expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "case",
    [*HAS_MODES, (optim.SGD, None, {"lr": 0.1, "momentum": 0.9}), (optim.Adam, None, {"lr": 0.1})],
    ids=[*mode_ids, "SGD", "Adam"],
)
def test_differentiable(case):
    """Gradients through three steps, against differences."""
    kind, _, options = case
    factors = np.array([[0.7, -1.1], [0.4, 0.9], [1.3, 0.8]])

    def run(start):
        begin = aten.tensor(start).requires_grad_()
        p = begin.clone()
        optimizer = kind([p], differentiable=True, **options)
        for factor in factors:
            p.grad = aten.tensor(factor) * begin * begin
            optimizer.step()
        loss = (p * p).sum()
        loss.backward()
        return float(loss), begin.grad.numpy()

    start = np.array([0.8, -1.2])
    _, gradient = run(start)
    h = 1e-4
    for i in range(2):
        e = np.eye(2)[i] * h
        difference = (run(start + e)[0] - run(start - e)[0]) / (2 * h)
        # Rprop steps by signs alone: its sizes have no gradient.
        np.testing.assert_allclose(gradient[i], difference, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_state_round_trip(case):
    kind, _, options = case
    starts, grads = data(5)
    params = [nn.Parameter(aten.tensor(start)) for start in starts]
    optimizer = kind(params, **options)
    for n, arrays in enumerate(grads):
        if n == 2:
            state = optimizer.state_dict()
            optimizer = kind(params, **options)
            optimizer.load_state_dict(state)
        for p, array in zip(params, arrays, strict=True):
            p.grad = aten.tensor(array)
        optimizer.step()
    for p, expected in zip(params, steps_of(kind, options, starts, grads), strict=True):
        # Loaded scalars take the parameters' dtype.
        np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-6)


def test_asgd_averages():
    p = nn.Parameter(aten.tensor([1.0]))
    optimizer = optim.ASGD([p], lr=0.1, lambd=0.0, t0=1)
    seen = []
    for _ in range(5):
        p.grad = aten.ones(1)
        optimizer.step()
        seen.append(p.item())
    # The first two values replace the average, the later ones enter it with 1 / (step - t0).
    np.testing.assert_allclose(optimizer.state[p]["ax"].item(), np.mean(seen[2:]), rtol=1e-5)


def quadratic(size, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((size, size))
    return a @ a.T + np.eye(size), rng.standard_normal(size)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_solves_a_quadratic(search):
    a, b = quadratic(6)
    parts = [nn.Parameter(aten.zeros(2, dtype=c10.float64)) for _ in range(3)]
    optimizer = optim.LBFGS(parts, max_iter=60, line_search_fn=search)
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        x = aten.cat(parts)
        loss = 0.5 * x @ (aten.tensor(a) @ x) - aten.tensor(b) @ x
        loss.backward()
        return loss

    first = optimizer.step(closure)
    assert first.item() == 0.0
    state = optimizer.state_dict()["state"][0]
    assert state["func_evals"] == calls
    np.testing.assert_allclose(
        np.concatenate([p.detach().numpy() for p in parts]), np.linalg.solve(a, b), rtol=2e-3
    )
    with pytest.raises(TypeError, match="LBFGS.step: got no closure"):
        optimizer.step()


def test_lbfgs_strong_wolfe_follows_a_valley():
    p = nn.Parameter(aten.tensor(np.array([-1.2, 1.0])))
    optimizer = optim.LBFGS([p], max_iter=50, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] * p[0]) ** 2
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    np.testing.assert_allclose(p.detach().numpy(), [1.0, 1.0], rtol=1e-4)


@pytest.mark.parametrize("shape", [(6, 20), (20, 6)])
def test_muon_steps_by_orthogonal_matrices(shape):
    rng = np.random.default_rng(0)
    start, grad = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    p = nn.Parameter(aten.tensor(start))
    p.grad = aten.tensor(grad)
    optim.Muon([p], lr=0.1, weight_decay=0.5).step()
    scale = 0.1 * math.sqrt(max(1.0, shape[0] / shape[1]))
    step = (start * (1 - 0.05) - p.detach().numpy()) / scale
    values = np.linalg.svd(step, compute_uv=False)
    assert values.min() > 0.6 and values.max() < 1.3
    u, _, v = np.linalg.svd(grad, full_matrices=False)
    # It points where the nearest orthogonal matrix does.
    assert np.sum(step * (u @ v)) / (np.linalg.norm(step) * np.linalg.norm(u @ v)) > 0.97
    with pytest.raises(ValueError, match=r"Muon: got a parameter of shape \[3\]"):
        optim.Muon([nn.Parameter(aten.ones(3))])


def test_other_parameters_for_a_while():
    p, other = nn.Parameter(aten.ones(2)), nn.Parameter(aten.zeros(2))
    optimizer = optim.RMSprop([p], lr=0.1)
    p.grad = aten.ones(2)
    optimizer.step()
    kept = p.detach().numpy().copy()
    twin = optim.RMSprop([nn.Parameter(aten.zeros(2))], lr=1.0)
    twin.param_groups[0]["params"][0].grad = aten.ones(2)
    twin.step()
    state = twin.state_dict()
    other.grad = aten.ones(2)
    with optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, state):
        assert optimizer.param_groups[0]["lr"] == 1.0
        optimizer.step()
        assert state["state"][0]["step"].item() == 2
    assert abs(other.detach().numpy()).min() > 1
    np.testing.assert_array_equal(p.detach().numpy(), kept)
    assert optimizer.param_groups[0]["lr"] == 0.1 and optimizer.state[p]["step"].item() == 1
    with pytest.raises(ValueError, match="got 0 parameters"):
        with optim.swap_in_optimizer_params_and_state(optimizer, {}, state):
            pass


def test_errors():
    p = [nn.Parameter(aten.ones(2))]
    for kind, options, text in [
        (optim.Adadelta, {"rho": 2.0}, "Adadelta: got rho=2.0, expected one in"),
        (optim.Adagrad, {"lr": -1.0}, "Adagrad: got lr=-1.0, expected at least 0"),
        (optim.Rprop, {"etas": (1.0, 2.0)}, "Rprop: got shrinking=1.0"),
        (optim.NAdam, {"betas": (0.9, 1.0)}, "NAdam: got beta2=1.0"),
        (optim.Muon, {"adjust_lr_fn": "none"}, "Muon: got adjust_lr_fn 'none'"),
    ]:
        with pytest.raises(ValueError, match=text):
            kind(p, **options)
    with pytest.raises(RuntimeError, match="LBFGS: got line_search_fn 'exact'"):
        optim.LBFGS(p, line_search_fn="exact")
