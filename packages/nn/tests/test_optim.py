"""Optimizers: closed forms, groups, state, hooks, closures and error texts."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
import argand_nn.functional as F
import argand_nn.optim as optim
from argand_nn.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

RNG = np.random.default_rng(0)
SIZES = [(3, 5), (7,), (1,), (130,)]


def parameters(dtype=c10.float64):
    rng = np.random.default_rng(1)
    return [nn.Parameter(aten.tensor(rng.standard_normal(s).tolist(), dtype=dtype)) for s in SIZES]


def set_grads(params, seed):
    rng = np.random.default_rng(seed)
    for p in params:
        p.grad = aten.tensor(rng.standard_normal(tuple(p.shape)).tolist(), dtype=p.dtype)


def sgd_by_hand(p, g, state, step, lr, momentum=0, dampening=0, weight_decay=0, nesterov=False):
    g = g + weight_decay * p
    if momentum:
        state["b"] = g if step == 1 else momentum * state["b"] + (1 - dampening) * g
        g = g + momentum * state["b"] if nesterov else state["b"]
    return p - lr * g


def adam_by_hand(p, g, state, step, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0,
                 amsgrad=False, decoupled=False):  # fmt: skip
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    m = state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
    v = state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * g * g
    if amsgrad:
        v = state["x"] = np.maximum(state.get("x", 0), v)
    return p - lr * (m / (1 - betas[0] ** step)) / (np.sqrt(v / (1 - betas[1] ** step)) + eps)


def adamw_by_hand(p, g, state, step, lr, weight_decay=1e-2, **options):
    return adam_by_hand(p, g, state, step, lr, weight_decay=weight_decay, decoupled=True, **options)


CASES = [
    (optim.SGD, sgd_by_hand, {"lr": 0.1}),
    (optim.SGD, sgd_by_hand, {"lr": 0.1, "momentum": 0.9}),
    (optim.SGD, sgd_by_hand, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.2}),
    (optim.SGD, sgd_by_hand, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    (optim.Adam, adam_by_hand, {"lr": 0.1}),
    (optim.Adam, adam_by_hand, {"lr": 0.1, "weight_decay": 0.1, "betas": (0.5, 0.8), "eps": 1e-3}),
    (optim.Adam, adam_by_hand, {"lr": 0.1, "amsgrad": True}),
    (optim.AdamW, adamw_by_hand, {"lr": 0.1}),
    (optim.AdamW, adamw_by_hand, {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True}),
]


@pytest.mark.parametrize("fused", [None, True, False])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0].__name__}-{c[2]}")
def test_steps(case, maximize, fused):
    kind, by_hand, options = case
    params = parameters()
    optimizer = kind(params, maximize=maximize, fused=fused, **options)
    expected = [p.detach().numpy().copy() for p in params]
    states = [{} for _ in params]
    for step in range(1, 6):
        set_grads(params, step)
        optimizer.step()
        for i, p in enumerate(params):
            g = -p.grad.numpy() if maximize else p.grad.numpy()
            expected[i] = by_hand(expected[i], g, states[i], step, **options)
    for p, e in zip(params, expected, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), e, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
def test_fused_and_loop_agree_in_float32(kind):
    options = {"momentum": 0.9} if kind is optim.SGD else {}
    fused, loop = parameters(c10.float32), parameters(c10.float32)
    a, b = kind(fused, lr=0.05, fused=True, **options), kind(loop, lr=0.05, fused=False, **options)
    for step in range(5):
        for params, optimizer in ((fused, a), (loop, b)):
            set_grads(params, step)
            optimizer.step()
    for p, q in zip(fused, loop, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_infinite_parameters_stay_without_decay(momentum, fused):
    p = nn.Parameter(aten.tensor([float("inf"), 1.0, -float("inf")]))
    optimizer = optim.SGD([p], lr=0.5, momentum=momentum, fused=fused)
    for _ in range(2):
        p.grad = aten.tensor([1.0, 0.0, 1.0])
        optimizer.step()
    assert p.detach().tolist() == [float("inf"), 1.0, -float("inf")]


def test_parameters_without_gradients_and_late_ones():
    params = parameters()
    optimizer = optim.SGD(params, lr=0.1, momentum=0.9)
    before = params[1].detach().clone()
    set_grads(params, 0)
    params[1].grad = None
    optimizer.step()
    assert aten.equal(params[1].detach(), before)
    assert params[1] not in optimizer.state
    set_grads(params, 1)
    optimizer.step()
    expected = before.numpy() - 0.1 * params[1].grad.numpy()
    np.testing.assert_allclose(params[1].detach().numpy(), expected, rtol=1e-12)


def test_training_lowers_the_loss():
    c10.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    x = aten.randn(64, 2)
    y = x[:, :1] * x[:, 1:]
    optimizer = optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


def test_groups():
    a, b, c, _ = parameters()
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.1)
    optimizer.add_param_group({"params": [c], "momentum": 0.5})
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 1.0, 0.1]
    assert optim.SGD([("c", c)]).param_groups[0]["param_names"] == ["c"]
    before = [p.detach().numpy().copy() for p in (a, b)]
    set_grads([a, b], 3)
    optimizer.step()
    np.testing.assert_allclose(a.detach().numpy(), before[0] - 0.1 * a.grad.numpy(), rtol=1e-12)
    np.testing.assert_allclose(b.detach().numpy(), before[1] - b.grad.numpy(), rtol=1e-12)
    assert "Parameter Group 2" in repr(optimizer)
    two = repr(optim.Adagrad([{"params": [a]}, {"params": b}]))
    assert "    weight_decay: 0\n\nParameter Group 1\n" in two and two.endswith("decay: 0\n)")


@pytest.mark.parametrize("kind", [optim.SGD, optim.AdamW])
def test_state_round_trip(kind):
    options = {"momentum": 0.9} if kind is optim.SGD else {"amsgrad": True}
    params, others = parameters(), parameters()
    a, b = kind(params, lr=0.1, **options), kind(others, lr=0.5, **options)
    set_grads(params, 0)
    a.step()
    state = copy.deepcopy(a.state_dict())
    assert sorted(state["state"]) == [0, 1, 2, 3]
    assert state["param_groups"][0]["params"] == [0, 1, 2, 3]
    b.load_state_dict(state)
    assert b.param_groups[0]["lr"] == 0.1
    for p, q in zip(params, others, strict=True):
        q.data.copy_(p.detach())
    for seed in (1, 2):
        for group, optimizer in ((params, a), (others, b)):
            set_grads(group, seed)
            optimizer.step()
    for p, q in zip(params, others, strict=True):
        assert aten.equal(p.detach(), q.detach())


def test_loaded_state_takes_the_parameters_dtype():
    params = parameters()
    a = optim.Adam(params)
    set_grads(params, 0)
    a.step()
    half = [nn.Parameter(p.detach().to(c10.float32)) for p in params]
    b = optim.Adam(half)
    b.load_state_dict(a.state_dict())
    assert b.state[half[0]]["exp_avg"].dtype == c10.float32
    assert float(b.state[half[0]]["step"]) == 1
    assert b.state[half[0]]["exp_avg"] is not a.state[params[0]]["exp_avg"]


@pytest.mark.parametrize("kind", [optim.Adam, optim.NAdam, optim.ASGD, optim.LBFGS])
def test_loaded_state_of_complex_parameters(kind):
    """Numbers among it stay real, so that both go on alike."""
    p = nn.Parameter(c10.tensor([1 + 2j, -3j, 0.5], dtype=c10.complex64))
    q = nn.Parameter(p.detach().clone())
    a, b = kind([p], lr=0.1), kind([q], lr=0.1)

    def step(optimizer, parameter):
        def closure():
            optimizer.zero_grad()
            loss = aten.sum(aten.square(aten.abs(parameter - 0.5)))
            loss.backward()
            return loss

        optimizer.step(closure)

    step(a, p)
    b.load_state_dict(a.state_dict())
    q.data.copy_(p.detach())
    for optimizer, parameter in ((a, p), (b, q)):
        step(optimizer, parameter)
    assert aten.equal(p.detach(), q.detach())
    for key, value in a.state[p].items():
        assert getattr(b.state[q][key], "dtype", None) == getattr(value, "dtype", None)


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.NAdam, optim.ASGD])
def test_states_of_older_versions(kind):
    """They lack options, and counts are numbers."""
    params, others = parameters(), parameters()
    a, b = kind(params, lr=0.1), kind(others, lr=0.5)
    set_grads(params, 0)
    a.step()
    state = a.state_dict()
    numbers = {"step", "eta", "mu", "mu_product"}
    old = {
        "state": {
            i: {k: float(v) if k in numbers else v for k, v in entries.items()}
            for i, entries in state["state"].items()
        },
        "param_groups": [
            {k: group[k] for k in ("params", "lr")} for group in state["param_groups"]
        ],
    }
    b.load_state_dict(old)
    assert b.param_groups[0].keys() == a.param_groups[0].keys() and b.param_groups[0]["lr"] == 0.1
    for p, q in zip(params, others, strict=True):
        q.data.copy_(p.detach())
    for group, optimizer in ((params, a), (others, b)):
        set_grads(group, 1)
        optimizer.step()
    for p, q in zip(params, others, strict=True):
        assert aten.equal(p.detach(), q.detach())


def test_wrong_states():
    params = parameters()
    optimizer = optim.SGD(params)
    state = optimizer.state_dict()
    with pytest.raises(ValueError, match="got 1 parameter groups, expected 2"):
        optim.SGD([{"params": params[:1]}, {"params": params[1:]}]).load_state_dict(state)
    with pytest.raises(ValueError, match="got 4 parameters in group 0, expected 3"):
        optim.SGD(params[:3]).load_state_dict(state)


def test_closure_and_hooks():
    p = nn.Parameter(aten.tensor([2.0]))
    optimizer = optim.SGD([p], lr=0.5)
    log = []
    given = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("pre"))
    optimizer.register_step_pre_hook(lambda o, args, kwargs: given.append(args))
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, closure), {}))
    handle = optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post"))

    def closure():
        log.append("closure")
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert float(optimizer.step().detach()) == 4.0
    assert given == [(optimizer,)]
    assert p.tolist() == [0.0]
    assert log == ["pre", "closure", "post"]
    handle.remove()
    optimizer.step()
    assert log[3:] == ["pre", "closure"]


def test_hooks_of_all_optimizers():
    seen = []
    first, second = (optim.SGD([nn.Parameter(aten.ones(1))], lr=0.1) for _ in range(2))
    first.register_step_pre_hook(lambda *_: seen.append("own"))
    with (
        register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append(o is first)),
        register_optimizer_step_post_hook(lambda *_: seen.append("after")),
    ):
        first.step()
        second.step()
    assert seen == [True, "own", "after", False, "after"]
    second.step()
    assert len(seen) == 5


def test_wrappers_of_optimizers():
    """Classes that look like optimizers and pass every call on, as libraries have them."""

    class Wrapper(optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            self.param_groups = inner.param_groups

        def hook_steps(self):
            self._optimizer_step_pre_hooks = {}
            self._optimizer_step_post_hooks = {0: lambda *_: seen.append("outer")}
            self._patch_step_function()

        def step(self, closure=None):
            return self.inner.step(closure)

    p = nn.Parameter(aten.tensor([2.0]))
    inner = optim.SGD([p], lr=0.5)
    seen = []
    inner.register_step_pre_hook(lambda o, *_: seen.append(o is inner))
    wrapper = Wrapper(inner)
    scheduler = optim.lr_scheduler.StepLR(wrapper, 1)
    p.grad = aten.ones(1)
    wrapper.step()
    scheduler.step()
    assert (p.tolist(), seen, inner.param_groups[0]["lr"]) == ([1.5], [True], 0.05)
    wrapper.hook_steps()
    wrapper.step()
    assert seen.pop() == "outer" and seen == [True, True]
    seen.pop()
    copied = pickle.loads(pickle.dumps(inner))
    copied.register_step_pre_hook(lambda o, *_: seen.append("copied"))
    copied.step()
    assert seen == [True, "copied"]


def test_zero_grad():
    params = parameters()
    optimizer = optim.SGD(params)
    set_grads(params, 0)
    optimizer.zero_grad(set_to_none=False)
    assert all(float(p.grad.abs().sum()) == 0 for p in params)
    optimizer.zero_grad()
    assert all(p.grad is None for p in params)


def test_subclass():
    class Signed(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.data.sub_(p.grad.sign() * group["lr"])

    p = nn.Parameter(aten.tensor([1.0, 1.0]))
    p.grad = aten.tensor([3.0, -2.0])
    optimizer = Signed([p], 0.25)
    calls = []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    optimizer.step()
    assert p.tolist() == [0.75, 1.25]
    assert calls == [1]


def test_errors():
    p = nn.Parameter(aten.ones(2))
    with pytest.raises(ValueError, match="got no parameters"):
        optim.SGD([])
    with pytest.raises(TypeError, match="got one Tensor"):
        optim.SGD(p)
    with pytest.raises(TypeError, match="got int, expected parameters"):
        optim.SGD([3])
    with pytest.raises(ValueError, match="expected a leaf"):
        optim.SGD([p * 2])
    with pytest.raises(ValueError, match="in more than one group"):
        optim.SGD([{"params": [p]}, {"params": [p]}])
    with pytest.warns(UserWarning, match="more than once in a group"):
        optim.SGD([p, p])
    q, named = nn.Parameter(aten.ones(2)), ("p", p)
    for mixed in ([named, q], [q, named], [{"params": [q]}, {"params": [named]}]):
        with pytest.raises(ValueError, match="expected names for all parameters"):
            optim.SGD(mixed)
    for kind in (optim.SGD, optim.Adam, optim.Muon):
        with pytest.raises(ValueError):
            kind([nn.Parameter(aten.ones(2, 2))], lr=aten.tensor([0.1, 0.2]))
    rate = aten.tensor(0.9)
    for options in ({"betas": (0.9, rate)}, {"lr": rate, "foreach": True}):
        with pytest.raises(ValueError, match=r"Adam: got .*Tensor"):
            optim.Adam([p], **options)
    with pytest.raises(TypeError, match="got a set"):
        optim.SGD([{"params": {p}}])
    with pytest.raises(ValueError, match="got lr=-1, expected at least 0; got momentum=-1"):
        optim.SGD([p], lr=-1, momentum=-1)
    with pytest.raises(ValueError, match="nesterov"):
        optim.SGD([p], nesterov=True)
    with pytest.raises(ValueError, match="beta2=1.0"):
        optim.Adam([p], betas=(0.9, 1.0))
    for kind in (optim.SGD, optim.Adam):
        for other in ("foreach", "differentiable"):
            with pytest.raises(RuntimeError, match=f"got fused=True and {other}=True"):
                kind([p], fused=True, **{other: True})
    strange = nn.Parameter(aten.ones(2, dtype=c10.complex64))
    strange.grad = aten.ones(2, dtype=c10.complex64)
    with pytest.raises(RuntimeError, match="expected floating-point CPU or CUDA tensors"):
        optim.SGD([strange], fused=True).step()
    with pytest.raises(RuntimeError, match="Adagrad: got fused=True with a argand.complex64"):
        optim.Adagrad([strange], fused=True).step()
    optim.SGD([strange], lr=0.5).step()
    assert strange.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("kind", [optim.SGD, optim.AdamW])
def test_strided_parameters(kind):
    strided = nn.Parameter(aten.ones(4, 4).t()[1:])
    plain = nn.Parameter(aten.ones(3, 4))
    for p in (strided, plain):
        p.grad = aten.arange(12).reshape(3, 4).to(c10.float32)
        kind([p], lr=0.5).step()
    assert strided.tolist() == plain.tolist()
    assert strided.tolist() != aten.ones(3, 4).tolist()


def table_with_gradient(rows, width=2):
    weight = nn.Parameter(aten.ones(4, width))
    F.embedding(aten.tensor(rows), weight, sparse=True).sum().backward()
    return weight


def test_sparse_adam_changes_the_rows_that_were_used():
    weight = table_with_gradient([1, 2, 1])
    optimizer = optim.SparseAdam([weight], lr=0.1)
    optimizer.step()
    # The first step's size is the rate, whatever the gradient.
    np.testing.assert_allclose(weight.detach().numpy()[:, 0], [1, 0.9, 0.9, 1], rtol=1e-6)
    state = optimizer.state_dict()
    assert state["state"][0]["step"] == 1 and list(state["state"][0]) == [
        "step",
        "exp_avg",
        "exp_avg_sq",
    ]
    np.testing.assert_allclose(
        state["state"][0]["exp_avg"].numpy()[:, 0], [0, 0.2, 0.1, 0], rtol=1e-6
    )
    assert state["param_groups"][0] == {
        "lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8, "maximize": False, "params": [0],
    }  # fmt: skip
    weight.grad = aten.zeros(4, 2).to_sparse()
    optimizer.step()
    assert optimizer.state[weight]["step"] == 2 and weight[3, 0].item() == 1.0
    other = optim.SparseAdam([table_with_gradient([0])])
    other.load_state_dict(copy.deepcopy(state))
    other.step()
    weight.grad = aten.ones(4, 2)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        optimizer.step()
    for wrong in ({"lr": 0}, {"eps": 0}, {"betas": (1.0, 0.9)}, {"lr": aten.ones(2)}):
        with pytest.raises(ValueError, match="SparseAdam: got"):
            optim.SparseAdam([weight], **wrong)
    with pytest.raises(ValueError, match="sparse parameters"):
        optim.SparseAdam([aten.ones(2).to_sparse()])


@pytest.mark.parametrize(
    "name",
    [
        "Adam",
        "AdamW",
        "RMSprop",
        "Adadelta",
        "Adamax",
        "NAdam",
        "RAdam",
        "ASGD",
        "Rprop",
        "Muon",
        "Adafactor",
    ],
)
def test_optimizers_that_refuse_sparse_gradients(name):
    weight = table_with_gradient([1])
    with pytest.raises(RuntimeError, match=f"{name[:4]}.* does not support sparse gradients"):
        getattr(optim, name)([weight]).step()
    assert weight.tolist() == aten.ones(4, 2).tolist()


def test_sparse_steps():
    weight = table_with_gradient([1, 2, 1])
    optimizer = optim.SGD([weight], lr=0.5, momentum=0.5)
    optimizer.step()
    optimizer.step()
    assert weight.detach()[:, 0].tolist() == [1.0, 1 - 1.0 - 1.5, 1 - 0.5 - 0.75, 1.0]
    assert optimizer.state[weight]["momentum_buffer"].is_sparse
    weight = table_with_gradient([1, 2, 1])
    optim.Adagrad([weight], lr=0.5).step()
    assert weight.detach()[:, 0].tolist() == [1.0, 0.5, 0.5, 1.0]
    for refused in (
        optim.Adagrad([weight], weight_decay=0.1),
        optim.SGD([weight], weight_decay=0.1),
    ):
        with pytest.raises(RuntimeError, match="sparse"):
            refused.step()
    with pytest.raises(NotImplementedError, match="sparse_coo"):
        nn.utils.clip_grad_norm_([weight], 1.0)
    optim.LBFGS([weight]).step(lambda: 0.0)
