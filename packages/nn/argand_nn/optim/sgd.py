"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_autograd import set_grad_enabled
from argand_c10 import Tensor
from argand_nn.optim.optimizer import (
    Closure,
    Optimizer,
    ParamsT,
    check_options,
    run_closure,
    split_for_fused,
)

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum (Sutskever et al., 2013).

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        momentum: share of the last step that is kept.
        dampening: share of the gradient that momentum drops.
        weight_decay: factor of the parameter added to its gradient.
        nesterov: look ahead by the momentum.
        maximize: go up the gradient instead of down.
        foreach: accepted, without effect.
        differentiable: record the step for autograd.
        fused: update all dense floating-point tensors in one operator; None does so where possible.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_options(
            "SGD",
            lr=(lr, float(lr) >= 0, "at least 0"),
            momentum=(momentum, momentum >= 0, "at least 0"),
            weight_decay=(weight_decay, weight_decay >= 0, "at least 0"),
            nesterov=(
                nesterov,
                not nesterov or (momentum > 0 and dampening == 0),
                "a momentum above 0 and no dampening with it",
            ),
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters by their gradients; see `Optimizer.step`."""
        with set_grad_enabled(self.defaults["differentiable"]):
            loss = run_closure(closure)
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                fused = False if group["differentiable"] else group["fused"]
                together, loop = split_for_fused(params, fused, "SGD")
                if together:
                    self._step_fused(together, group)
                for p in loop:
                    assert p.grad is not None
                    _change(p, p.grad, self.state[p] if group["momentum"] else {}, group)
        return loss

    def _step_fused(self, params: list[Tensor], group: dict[str, Any]) -> None:
        with_momentum = group["momentum"] != 0
        started = [with_momentum and "momentum_buffer" in self.state[p] for p in params]
        for is_first_step in (False, True) if with_momentum else (False,):
            chosen = [
                p
                for p, has_buffer in zip(params, started, strict=True)
                if not with_momentum or has_buffer is not is_first_step
            ]
            if not chosen:
                continue
            if is_first_step:
                # Zeros where the step may be skipped, as the next one is not the first then.
                new_buffer = aten.empty_like if self.found_inf is None else aten.zeros_like
                for p in chosen:
                    self.state[p]["momentum_buffer"] = new_buffer(p.detach())
            aten.fused_sgd_(
                chosen,
                [grad for p in chosen if (grad := p.grad) is not None],
                [self.state[p]["momentum_buffer"] for p in chosen] if with_momentum else [],
                lr=float(group["lr"]),
                momentum=float(group["momentum"]),
                dampening=float(group["dampening"]),
                nesterov=group["nesterov"],
                weight_decay=float(group["weight_decay"]),
                maximize=group["maximize"],
                is_first_step=is_first_step,
                grad_scale=self.grad_scale,
                found_inf=self.found_inf,
            )


def _change(parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
    if group["maximize"]:
        grad = -grad
    if group["weight_decay"] != 0:
        grad = grad + group["weight_decay"] * parameter
    if group["momentum"] != 0:
        buffer: Tensor | None = state.get("momentum_buffer")
        if buffer is None:
            buffer = state["momentum_buffer"] = grad.clone()
        else:
            buffer.mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
        grad = grad + group["momentum"] * buffer if group["nesterov"] else buffer
    parameter.add_(grad, alpha=-float(group["lr"]))


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step of `SGD` on lists of tensors: `params` and `momentum_buffer_list` change in place, by the gradients `d_p_list`.

    Args:
        params, d_p_list: tensors and their gradients.
        momentum_buffer_list: the momentum of each, None before the first step, which puts tensors there.
        fused: whether one operator changes all of them.
        grad_scale, found_inf: with fused, what gradients are divided by, and whether to leave the step out, as a gradient scaler has them.
        has_sparse_grad, foreach: accepted, without effect.
        others: as `SGD` has them.
    """
    group: dict[str, Any] = {
        "lr": lr,
        "momentum": momentum,
        "dampening": dampening,
        "weight_decay": weight_decay,
        "nesterov": nesterov,
        "maximize": maximize,
    }
    if fused:
        first = momentum != 0 and all(buffer is None for buffer in momentum_buffer_list)
        for i, buffer in enumerate(momentum_buffer_list):
            if momentum != 0 and buffer is None:
                momentum_buffer_list[i] = aten.zeros_like(params[i].detach())
        aten.fused_sgd_(
            params,
            d_p_list,
            [buffer for buffer in momentum_buffer_list if buffer is not None]
            if momentum != 0
            else [],
            **{**group, "lr": float(lr)},
            is_first_step=first,
            grad_scale=grad_scale,
            found_inf=found_inf,
        )
        return
    for i, (parameter, grad) in enumerate(zip(params, d_p_list, strict=True)):
        buffer = momentum_buffer_list[i] if momentum != 0 else None
        state: dict[str, Any] = {} if buffer is None else {"momentum_buffer": buffer}
        _change(parameter, grad, state, group)
        if momentum != 0:
            momentum_buffer_list[i] = state["momentum_buffer"]
