"""Optimizer steps, unscaling and norms over lists of tensors on an emulated CUDA device against the CPU."""

from __future__ import annotations

from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
from argand_c10 import Tensor, bfloat16, float16, float32, float64, from_numpy, int32

emulated.start()

SHAPES = [(3,), (33000,), (5, 7), (0,), (1,)]
TOLERANCE = {float32: 2e-6, float64: 1e-14, bfloat16: 1e-2, float16: 1e-3}
_random = np.random.default_rng(0)


def _lists(dtype: Any, low: float = -1.0) -> tuple[list[Tensor], list[Tensor]]:
    """The same numbers on the CPU and on the device."""
    host = [from_numpy(_random.uniform(low, 1, s)).to(dtype) for s in SHAPES]
    return host, [t.to(device="cuda") for t in host]


def _check(host: list[Tensor], device: list[Tensor], tolerance: float | None = None) -> None:

    emulated.check()
    for a, b in zip(host, device, strict=True):
        tol = TOLERANCE[a.dtype] if tolerance is None else tolerance
        values = b.to(device="cpu").to(float64).numpy()
        np.testing.assert_allclose(values, a.to(float64).numpy(), rtol=tol, atol=tol)


def _number(value: float) -> tuple[Tensor, Tensor]:
    made = aten.full((), value, dtype=float32)
    return made, made.to(device="cuda")


@pytest.mark.parametrize("dtype", [float32, bfloat16, float64])
@pytest.mark.parametrize(
    "operator,amsgrad,maximize", [("fused_adam_", True, True), ("fused_adamw_", False, False)]
)
def test_adam(operator: str, amsgrad: bool, maximize: bool, dtype: Any) -> None:
    lists = [_lists(dtype), _lists(dtype), _lists(dtype), _lists(dtype, 0.1), _lists(dtype, 0.1)]
    steps = [aten.full((), float(i)) for i in range(len(SHAPES))]
    device_steps = [s.to(device="cuda") for s in steps]
    options = {
        "lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.1, "eps": 1e-8, "amsgrad": amsgrad, "maximize": maximize,
    }  # fmt: skip
    for _ in range(2):
        for side, counts in ((0, steps), (1, device_steps)):
            p, g, m, v, top = (pair[side] for pair in lists)
            getattr(aten, operator)(p, g, m, v, top if amsgrad else [], counts, **options)
    for host, device in lists:
        _check(host, device)
    _check(steps, device_steps)


def test_adam_with_states_of_another_dtype() -> None:
    host, device = _lists(bfloat16)
    wide = [t.to(float32) for t in host]
    grads, device_grads = _lists(bfloat16)
    zeros = [[aten.zeros(s) for s in SHAPES] for _ in range(2)]
    device_zeros = [[t.to(device="cuda") for t in z] for z in zeros]
    steps = [aten.zeros(()) for _ in SHAPES]
    options = {
        "lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": False, "maximize": False,
    }  # fmt: skip
    aten.fused_adam_(
        device, device_grads, *device_zeros, [], [s.to(device="cuda") for s in steps], **options
    )
    aten.fused_adam_(wide, [g.to(float32) for g in grads], *zeros, [], steps, **options)
    _check(zeros[0], device_zeros[0])
    _check([t.to(bfloat16) for t in wide], device)


@pytest.mark.parametrize("dtype", [float32, bfloat16])
@pytest.mark.parametrize("momentum,nesterov,maximize", [(0.0, False, True), (0.9, True, False)])
def test_sgd(dtype: Any, momentum: float, nesterov: bool, maximize: bool) -> None:
    lists = [_lists(dtype), _lists(dtype), _lists(dtype)]
    for turn in range(2):
        for side in (0, 1):
            p, g, b = (pair[side] for pair in lists)
            aten.fused_sgd_(
                p, g, b if momentum else [], lr=0.1, momentum=momentum, dampening=0.0, nesterov=nesterov,
                weight_decay=0.01, maximize=maximize, is_first_step=turn == 0,
            )  # fmt: skip
    for host, device in lists:
        _check(host, device)


@pytest.mark.parametrize("found", [0.0, 1.0])
def test_steps_unscale_and_skip(found: float) -> None:
    lists = [_lists(float32), _lists(float32), _lists(float32), _lists(float32, 0.1)]
    steps = [aten.zeros(()) for _ in SHAPES]
    device_steps = [s.to(device="cuda") for s in steps]
    flag, scale = _number(found), _number(8.0)
    for side, counts in ((0, steps), (1, device_steps)):
        p, g, m, v = (pair[side] for pair in lists)
        aten.fused_adamw_(
            p, g, m, v, [], counts, lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False,
            grad_scale=scale[side], found_inf=flag[side],
        )  # fmt: skip
        aten.fused_sgd_(
            p, g, m, lr=0.1, momentum=0.9, dampening=0.1, nesterov=False, weight_decay=0.0, maximize=False, is_first_step=False,
            grad_scale=scale[side], found_inf=flag[side],
        )  # fmt: skip
    for host, device in lists:
        _check(host, device)
    _check(steps, device_steps)
    assert float(steps[0]) == (1.0 if found == 0 else 0.0)


@pytest.mark.parametrize("bad", [None, float("inf"), float("nan")])
def test_unscale(bad: float | None) -> None:
    for dtype in (float32, float16):
        host, device = _lists(dtype)
        if bad is not None:
            host[1][32990] = bad
            device[1] = host[1].to(device="cuda")
        (found, device_found), (factor, device_factor) = _number(0.0), _number(0.25)
        aten.ops._amp_foreach_non_finite_check_and_unscale_(host, found, factor)
        aten.ops._amp_foreach_non_finite_check_and_unscale_(device, device_found, device_factor)
        _check([*host, found], [*device, device_found])
        assert float(found) == (0.0 if bad is None else 1.0)


def test_scales() -> None:
    for scale, tracker, found in ((8.0, 0, 0.0), (8.0, 1, 0.0), (8.0, 1, 1.0), (3e38, 1, 0.0)):
        a, b = _number(scale), _number(found)
        count = aten.full((), tracker, dtype=int32)
        device_count = count.to(device="cuda")
        aten.ops._amp_update_scale_(a[0], count, b[0], 2.0, 0.5, 2)
        aten.ops._amp_update_scale_(a[1], device_count, b[1], 2.0, 0.5, 2)
        _check([a[0]], [a[1]])
        assert int(count) == int(device_count.to(device="cpu"))


@pytest.mark.parametrize("order", [2.0, 1.0, float("inf")])
def test_norm_and_product(order: float) -> None:
    for dtype in (float32, bfloat16, float64):
        host, device = _lists(dtype)
        flat = np.concatenate([t.to(float64).numpy().ravel() for t in host])
        total = aten.ops._foreach_total_norm(device, order)
        emulated.check()
        assert total.dtype is dtype
        want = np.linalg.norm(flat, order)
        tolerance = {float32: 1e-5, bfloat16: 1e-2, float64: 1e-12}[dtype]
        assert float(total.to(device="cpu")) == pytest.approx(want, rel=tolerance)
        factor, device_factor = _number(0.3)
        aten.ops._foreach_mul_(host, factor)
        aten.ops._foreach_mul_(device, device_factor)
        _check(host, device)


def test_a_norm_with_nan_is_nan() -> None:
    for order in (2.0, float("inf")):
        values = aten.ones(40000)
        values[39999] = float("nan")
        total = aten.ops._foreach_total_norm([values.to(device="cuda")], order)
        assert np.isnan(float(total.to(device="cpu")))


def test_one_launch_serves_all_tensors() -> None:
    _, device = _lists(float32)
    factor = _number(1.0)[1]
    emulated.launches.clear()
    aten.ops._foreach_mul_(device, factor)
    assert len(emulated.launches) == 1


def test_errors() -> None:
    host, device = _lists(float32)
    options = {"lr": 0.1, "momentum": 0.0, "dampening": 0.0, "nesterov": False, "weight_decay": 0.0, "maximize": False, "is_first_step": True}  # fmt: skip
    with pytest.raises(RuntimeError, match="expected the same number"):
        aten.fused_sgd_(device, device[:1], [], **options)
    with pytest.raises(RuntimeError, match="on its device"):
        aten.fused_sgd_(device, host, [], **options)
    with pytest.raises(RuntimeError, match="steps are float32 tensors"):
        adam = {"lr": 0.1, "beta1": 0.9, "beta2": 0.9, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": False, "maximize": False}  # fmt: skip
        aten.fused_adam_(device, device, device, device, [], host, **adam)
