"""Adadelta."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_c10 import Tensor
from argand_nn.optim.loop import (
    LoopOptimizer,
    average_square,
    change_all,
    count_step,
    learning_rate,
    move,
    new_step,
    with_decay,
)
from argand_nn.optim.optimizer import ParamsT, check_options

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["Adadelta", "adadelta"]


class Adadelta(LoopOptimizer):
    """Adadelta (Zeiler, 2012): steps in the ratio of the running sizes of steps and gradients.

    Args:
        params: parameters or groups of them.
        lr: factor of the steps.
        rho: decay of the running squares.
        eps: added under both roots.
        weight_decay: factor of the parameter added to its gradient.
        foreach: accepted, without effect.
        capturable: keep step counts beside the parameters, for CUDA graphs.
        maximize: go up the gradient instead of down.
        differentiable: record the step for autograd.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(
            "Adadelta",
            lr=(lr, float(lr) >= 0, "at least 0"),
            rho=(rho, 0 <= rho <= 1, "one in [0, 1]"),
            eps=(eps, eps >= 0, "at least 0"),
            weight_decay=(weight_decay, weight_decay >= 0, "at least 0"),
        )
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "step": new_step(parameter, group),
            "square_avg": aten.zeros_like(parameter),
            "acc_delta": aten.zeros_like(parameter),
        }

    def update(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        rho, eps = group["rho"], group["eps"]
        count_step(state, group)
        grad = with_decay(parameter, grad, group)
        average_square(state["square_avg"], grad, rho)
        deltas = state["acc_delta"]
        delta = aten.sqrt(deltas + eps) / aten.sqrt(state["square_avg"] + eps) * grad
        average_square(deltas, delta, rho)
        move(parameter, delta, learning_rate(group))


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """One step of `Adadelta` on lists of tensors: `params` and the state change in place, by `grads`.

    Args:
        params, grads: tensors and their gradients.
        the state: the state of each.
        state_steps: how many steps each has had, tensors of one element.
        foreach, has_complex: accepted, without effect.
        others: as `Adadelta` has them.
    """
    states = {"square_avg": square_avgs, "acc_delta": acc_deltas, "step": state_steps}
    change_all(
        Adadelta,
        params,
        grads,
        states,
        lr=lr,
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
        capturable=capturable,
        differentiable=differentiable,
    )
