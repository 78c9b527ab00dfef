"""Muon."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand_autograd import no_grad
from argand_c10 import Tensor, bfloat16
from argand_nn.optim.optimizer import (
    Closure,
    Optimizer,
    ParamsT,
    check_options,
    refuse_sparse_gradients,
    run_closure,
)

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["Muon", "muon"]

# The factor of the rate for a matrix (rows, columns), by name.
_RATE_FACTORS: dict[str, Callable[[int, int], float]] = {
    "original": lambda rows, columns: math.sqrt(max(1.0, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
}


class Muon(Optimizer):
    """Momentum whose matrices are made orthogonal by Newton-Schulz steps (Jordan et al., 2024).

    Args:
        params: 2-d parameters or groups of them.
        lr: learning rate.
        weight_decay: share of the rate by which parameters shrink in each step.
        momentum: decay of the running mean of the gradient.
        nesterov: step by the mean of gradient and momentum.
        ns_coefficients: of a Newton-Schulz step a X + (b X X' + c (X X')**2) X.
        eps: smallest norm that a matrix is divided by.
        ns_steps: number of Newton-Schulz steps, in bfloat16; below 100.
        adjust_lr_fn: original (default) scales the rate by sqrt(max(1, rows / columns)),
            match_rms_adamw by 0.2 * sqrt(max(rows, columns)).
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_options(
            "Muon",
            lr=(lr, float(lr) >= 0, "at least 0"),
            momentum=(momentum, momentum >= 0, "at least 0"),
            weight_decay=(weight_decay, weight_decay >= 0, "at least 0"),
            ns_steps=(ns_steps, ns_steps < 100, "below 100"),
        )
        if adjust_lr_fn is not None and adjust_lr_fn not in _RATE_FACTORS:
            raise ValueError(
                f"Muon: got adjust_lr_fn {adjust_lr_fn!r}, expected one of {list(_RATE_FACTORS)}"
            )
        if len(ns_coefficients) != 3:
            raise ValueError(f"Muon: got {len(ns_coefficients)} ns_coefficients, expected 3")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.dim() != 2:
                    raise ValueError(
                        f"Muon: got a parameter of shape {list(parameter.shape)}, expected 2 "
                        "dimensions; give the others to another optimizer"
                    )

    @no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters by their gradients; see `Optimizer.step`."""
        loss = run_closure(closure)
        for group in self.param_groups:
            refuse_sparse_gradients(group["params"], type(self))
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step_one(parameter, group)
        return loss

    def _step_one(self, parameter: Tensor, group: dict[str, Any]) -> None:
        if parameter.is_complex():
            raise RuntimeError("Muon: got a complex parameter, expected real ones")
        state, grad = self.state[parameter], parameter.grad
        assert grad is not None
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = aten.zeros_like(grad)
        _change(parameter, grad, state["momentum_buffer"], group)


def _change(parameter: Tensor, grad: Tensor, mean: Tensor, group: dict[str, Any]) -> None:
    """A step of one parameter; `mean` is that of its gradients."""
    lr, momentum = float(group["lr"]), group["momentum"]
    mean.lerp_(grad, 1 - momentum)
    direction = aten.lerp(grad, mean, momentum) if group["nesterov"] else mean
    direction = _orthogonal(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
    factor = _RATE_FACTORS[group["adjust_lr_fn"] or "original"]
    parameter.mul_(1 - lr * group["weight_decay"])
    parameter.add_(direction.to(parameter.dtype), alpha=-lr * factor(*parameter.shape))


def muon(
    params: list[Tensor],
    grads: list[Tensor],
    muon_momentum_bufs: list[Tensor],
    *,
    foreach: bool | None = None,
    lr: float,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
    has_complex: bool,
) -> None:
    """One step of `Muon` on lists of tensors: `params` and muon_momentum_bufs change in place, by `grads`.

    Args:
        params, grads: matrices and their gradients.
        muon_momentum_bufs: the mean of the gradients of each.
        foreach: accepted, without effect.
        has_complex: must be False.
        others: as `Muon` has them.

    Raises:
        ValueError: there are complex matrices.
    """
    if has_complex:
        raise ValueError("Complex parameters are not supported")
    group = {
        "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
        "ns_coefficients": ns_coefficients, "ns_steps": ns_steps, "eps": eps, "adjust_lr_fn": adjust_lr_fn,
    }  # fmt: skip
    for parameter, grad, mean in zip(params, grads, muon_momentum_bufs, strict=True):
        _change(parameter, grad, mean, group)


def _orthogonal(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """`matrix` with singular values near 1, in bfloat16."""
    a, b, c = coefficients
    x = matrix.to(bfloat16)
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.t()
    x = x / aten.clamp(aten.norm(x), min=eps)
    for _ in range(steps):
        gram = aten.matmul(x, x.t())
        x = aten.addmm(x, aten.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x
