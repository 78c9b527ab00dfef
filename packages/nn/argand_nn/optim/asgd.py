"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_c10 import Tensor, float32
from argand_nn.optim.loop import (
    LoopOptimizer,
    change_all,
    count_step,
    learning_rate,
    move,
    new_step,
    stays_on_device,
    with_decay,
)
from argand_nn.optim.optimizer import ParamsT, check_options

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["ASGD", "asgd"]


class ASGD(LoopOptimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

    The state's `ax` is the average of the parameter after step `t0`.

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        lambd: share of the rate by which parameters shrink in each step.
        alpha: power of the rate's decay.
        t0: the step at which averaging begins.
        weight_decay: factor of the parameter added to its gradient.
        foreach: accepted, without effect.
        maximize: go up the gradient instead of down.
        differentiable: record the step for autograd.
        capturable: keep step counts beside the parameters, for CUDA graphs.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_options(
            "ASGD",
            lr=(lr, float(lr) >= 0, "at least 0"),
            weight_decay=(weight_decay, weight_decay >= 0, "at least 0"),
        )
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        step = new_step(parameter, group)
        return {
            "step": step,
            "eta": aten.full((), float(group["lr"]), dtype=float32, device=step.device),
            "mu": aten.ones((), dtype=float32, device=step.device),
            "ax": aten.zeros_like(parameter),
        }

    def update(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        on_device = stays_on_device(group)
        step = count_step(state, group)
        grad = with_decay(parameter, grad, group)
        # Copies: both are changed below, and a graph keeps what it has read.
        eta = state["eta"].clone() if on_device else float(state["eta"])
        mu = state["mu"].clone() if on_device else float(state["mu"])
        parameter.mul_(1 - group["lambd"] * eta)
        move(parameter, grad, eta)
        state["ax"].add_((parameter - state["ax"]) * mu)
        lr = learning_rate(group)
        late = step - group["t0"]
        rate = lr / (1 + group["lambd"] * lr * step) ** group["alpha"]
        if isinstance(late, Tensor):
            state["eta"].copy_(rate)
            state["mu"].copy_(1 / aten.clamp(late, min=1.0))
        else:
            state["eta"].fill_(rate)
            state["mu"].fill_(1 / max(1.0, late))


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step of `ASGD` on lists of tensors: `params` and axs, mus, etas change in place, by `grads`.

    Args:
        params, grads: tensors and their gradients.
        axs, mus, etas: the state of each.
        state_steps: how many steps each has had, tensors of one element.
        foreach, has_complex: accepted, without effect.
        others: as `ASGD` has them.
    """
    states = {"ax": axs, "mu": mus, "eta": etas, "step": state_steps}
    change_all(
        ASGD,
        params,
        grads,
        states,
        lambd=lambd,
        lr=lr,
        t0=t0,
        alpha=alpha,
        weight_decay=weight_decay,
        maximize=maximize,
        capturable=capturable,
        differentiable=differentiable,
    )
