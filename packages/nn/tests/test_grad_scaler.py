"""The gradient scaler: scales, skipped steps, growth, states, and fused steps that unscale."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import argand_aten as aten
import argand_nn as nn
from argand_c10 import cuda, float16
from argand_nn.amp import GradScaler
from argand_nn.optim import SGD, Adam, AdamW
from argand_nn.utils import clip_grad_norm_


def _linear() -> nn.Linear:
    layer = nn.Linear(3, 2)
    for p in layer.parameters():
        p.data = aten.arange(p.numel()).float().reshape(p.shape) / 7 - 0.3
    return layer


def _loss(layer: nn.Linear, factor: float = 1.0) -> Any:
    return (layer(aten.ones(4, 3)) ** 2).sum() * factor


@pytest.mark.parametrize("fused", [True, False, None])
@pytest.mark.parametrize("make", [SGD, Adam, AdamW])
def test_steps_equal_unscaled_ones(make: Any, fused: bool | None) -> None:
    plain, scaled = _linear(), _linear()
    options = {"lr": 0.1, "fused": fused}
    if make is SGD:
        options["momentum"] = 0.9
    a, b = make(plain.parameters(), **options), make(scaled.parameters(), **options)
    scaler = GradScaler("cpu", init_scale=1024.0)
    for _ in range(3):
        a.zero_grad()
        b.zero_grad()
        _loss(plain).backward()
        a.step()
        scaler.scale(_loss(scaled)).backward()
        scaler.step(b)
        scaler.update()
    for p, q in zip(plain.parameters(), scaled.parameters(), strict=True):
        assert aten.equal(p, q)  # a power of two loses no bits


@pytest.mark.parametrize("fused", [True, False])
def test_infinite_gradients_skip_the_step(fused: bool) -> None:
    layer = _linear()
    optimizer = Adam(layer.parameters(), lr=0.1, fused=fused)
    scaler = GradScaler("cpu", init_scale=8.0, growth_interval=2)
    before = [p.detach().clone() for p in layer.parameters()]
    scaler.scale(_loss(layer, float("inf"))).backward()
    scaler.step(optimizer)
    scaler.update()
    assert all(aten.equal(p, q) for p, q in zip(layer.parameters(), before, strict=True))
    assert all(float(s["step"]) == 0 for s in optimizer.state.values())
    assert scaler.get_scale() == 4.0
    for expected in (4.0, 8.0, 8.0):
        optimizer.zero_grad()
        scaler.scale(_loss(layer)).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == expected


def test_momentum_begins_after_a_skipped_first_step() -> None:
    plain, scaled = _linear(), _linear()
    scaler = GradScaler("cpu", init_scale=4.0)
    a = SGD(plain.parameters(), lr=0.1, momentum=0.9)
    b = SGD(scaled.parameters(), lr=0.1, momentum=0.9, fused=True)
    garbage = [aten.full(p.shape, 1e30) for p in scaled.parameters() for _ in range(8)]
    del garbage  # what new memory holds
    for factor in (float("inf"), 1.0, 1.0):
        b.zero_grad()
        scaler.scale(_loss(scaled, factor)).backward()
        scaler.step(b)
        scaler.update()
    for _ in range(2):
        a.zero_grad()
        _loss(plain).backward()
        a.step()
    for p, q in zip(plain.parameters(), scaled.parameters(), strict=True):
        assert aten.allclose(p.detach(), q.detach())


def test_sparse_gradients_are_unscaled() -> None:
    table = nn.Embedding(4, 2, sparse=True)
    before = table.weight.detach().clone()
    optimizer, scaler = SGD(table.parameters(), lr=1.0), GradScaler("cpu", init_scale=8.0)
    scaler.scale(table(aten.tensor([2, 0, 2])).sum()).backward()
    scaler.unscale_(optimizer)
    assert table.weight.grad is not None
    assert table.weight.grad.to_dense()[:, 0].tolist() == [1.0, 0.0, 2.0, 0.0]
    scaler.step(optimizer)
    scaler.update()
    assert aten.allclose(before[:, 0] - table.weight[:, 0], aten.tensor([1.0, 0.0, 2.0, 0.0]))
    optimizer.zero_grad()
    stepped = table.weight.detach().clone()
    # The sum of the doubles is infinite, not they.
    scaler.scale(table(aten.tensor([1, 1])).sum() * 3e37).backward()
    assert table.weight.grad is not None and bool(aten.isfinite(table.weight.grad._values()).all())
    scaler.step(optimizer)
    scaler.update()
    assert aten.equal(table.weight, stepped) and scaler.get_scale() == 4.0


def test_unscaled_gradients_can_be_clipped() -> None:
    layer, optimizer_scale = _linear(), 256.0
    optimizer = SGD(layer.parameters(), lr=1.0, fused=True)
    scaler = GradScaler("cpu", init_scale=optimizer_scale)
    _loss(layer).backward()
    plain = [p.grad.clone() for p in layer.parameters()]
    optimizer.zero_grad()
    scaler.scale(_loss(layer)).backward()
    scaler.unscale_(optimizer)
    assert all(aten.equal(p.grad, g) for p, g in zip(layer.parameters(), plain, strict=True))
    clip_grad_norm_(layer.parameters(), 0.5)
    before = layer.weight.detach().clone()
    clipped = layer.weight.grad.clone()
    scaler.step(optimizer)
    scaler.update()
    assert aten.equal(layer.weight, before - clipped)


def test_several_optimizers() -> None:
    one, two = _linear(), _linear()
    a, b = SGD(one.parameters(), lr=0.1), SGD(two.parameters(), lr=0.1)
    scaler = GradScaler("cpu", init_scale=4.0)
    losses = scaler.scale([_loss(one), _loss(two, float("nan"))])
    for loss in losses:
        loss.backward()
    before = one.weight.detach().clone(), two.weight.detach().clone()
    scaler.step(a)
    scaler.step(b)
    scaler.update()
    assert not aten.equal(one.weight, before[0]) and aten.equal(two.weight, before[1])
    assert scaler.get_scale() == 2.0


def test_order_of_calls() -> None:
    layer = _linear()
    optimizer = SGD(layer.parameters(), lr=0.1)
    scaler = GradScaler("cpu")
    with pytest.raises(AssertionError, match="nothing has been scaled"):
        scaler.step(optimizer)
    scaler.scale(_loss(layer)).backward()
    with pytest.raises(RuntimeError, match="closures"):
        scaler.step(optimizer, lambda: None)
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called since"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="middle of a step"):
        pickle.dumps(scaler)
    scaler.update()
    with pytest.raises(AssertionError, match="no optimizer has taken a step"):
        scaler.update()


def test_bad_arguments() -> None:
    with pytest.raises(AssertionError, match="growth_factor"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff_factor"):
        GradScaler("cpu", backoff_factor=1.0)
    with pytest.raises(ValueError, match="expected a Tensor"):
        GradScaler("cpu").scale(3)
    weight = aten.ones(2, dtype=float16).requires_grad_()
    optimizer = SGD([weight], lr=0.1, fused=False)
    scaler = GradScaler("cpu", init_scale=2.0)
    scaler.scale(weight.sum()).backward()
    with pytest.raises(ValueError, match="FP16 gradients"):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="without gradients"):
        empty = SGD([aten.ones(1).requires_grad_()], lr=0.1)
        scaler.step(empty)


def test_state() -> None:
    scaler = GradScaler("cpu", init_scale=16.0, growth_factor=3.0, growth_interval=7)
    layer = _linear()
    optimizer = SGD(layer.parameters(), lr=0.1)
    scaler.scale(_loss(layer)).backward()
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 16.0, "growth_factor": 3.0, "backoff_factor": 0.5, "growth_interval": 7, "_growth_tracker": 1,
    }  # fmt: skip
    other = GradScaler("cpu")
    other.load_state_dict(state)
    assert other.state_dict() == state and other.get_growth_interval() == 7
    scaler.load_state_dict({**state, "scale": 32.0})
    assert scaler.get_scale() == 32.0
    copied = pickle.loads(pickle.dumps(scaler))
    assert copied.get_scale() == 32.0 and copy.deepcopy(scaler).get_scale() == 32.0
    with pytest.raises(RuntimeError, match="empty state"):
        scaler.load_state_dict({})
    scaler.update(new_scale=5.0)
    assert scaler.get_scale() == 5.0


def test_not_enabled() -> None:
    layer = _linear()
    optimizer = SGD(layer.parameters(), lr=0.1)
    scaler = GradScaler("cpu", enabled=False)
    loss = _loss(layer)
    assert scaler.scale(loss) is loss
    loss.backward()
    before = layer.weight.detach().clone()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert not aten.equal(layer.weight, before)
    assert scaler.get_scale() == 1.0 and scaler.state_dict() == {} and not scaler.is_enabled()


def test_scalers_of_devices_that_are_missing_are_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "is_available", lambda: False)
    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = GradScaler()
    loss = _loss(_linear())
    assert not scaler.is_enabled()
    assert scaler.scale(loss) is loss
    assert scaler.state_dict() == {}
    monkeypatch.setattr(cuda, "is_available", lambda: True)
    assert GradScaler().is_enabled()
