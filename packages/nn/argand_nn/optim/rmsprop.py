"""RMSprop."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_c10 import Tensor
from argand_nn.optim.loop import (
    LoopOptimizer,
    average,
    average_square,
    change_all,
    count_step,
    learning_rate,
    move,
    move_ratio,
    new_step,
    with_decay,
)
from argand_nn.optim.optimizer import ParamsT, check_options

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["RMSprop", "rmsprop"]


class RMSprop(LoopOptimizer):
    """RMSprop (Hinton, 2012; centred: Graves, 2013).

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        alpha: decay of the running square of the gradient.
        eps: added to the denominator.
        weight_decay: factor of the parameter added to its gradient.
        momentum: decay of the running sum of the steps.
        centered: divide by the gradient's deviation instead of its root mean square.
        capturable: keep step counts beside the parameters, for CUDA graphs.
        foreach: accepted, without effect.
        maximize: go up the gradient instead of down.
        differentiable: record the step for autograd.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(
            "RMSprop",
            lr=(lr, float(lr) >= 0, "at least 0"),
            alpha=(alpha, alpha >= 0, "at least 0"),
            eps=(eps, eps >= 0, "at least 0"),
            weight_decay=(weight_decay, weight_decay >= 0, "at least 0"),
            momentum=(momentum, momentum >= 0, "at least 0"),
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ["square_avg"]
        if group["momentum"] > 0:
            names.append("momentum_buffer")
        if group["centered"]:
            names.append("grad_avg")
        return {
            "step": new_step(parameter, group),
            **{name: aten.zeros_like(parameter) for name in names},
        }

    def update(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        alpha, lr = group["alpha"], learning_rate(group)
        count_step(state, group)
        grad = with_decay(parameter, grad, group)
        square = state["square_avg"]
        average_square(square, grad, alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            average(mean, grad, alpha)
            square = square - mean * mean
        scale = aten.sqrt(square) + group["eps"]
        if group["momentum"] > 0:
            state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, scale, value=1)
            move(parameter, state["momentum_buffer"], lr)
        else:
            move_ratio(parameter, grad, scale, lr)


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step of `RMSprop` on lists of tensors: `params` and square_avgs, grad_avgs, momentum_buffer_list change in place, by `grads`.

    Args:
        params, grads: tensors and their gradients.
        square_avgs, grad_avgs, momentum_buffer_list: the state of each.
        state_steps: how many steps each has had, tensors of one element.
        foreach, has_complex: accepted, without effect.
        others: as `RMSprop` has them.
    """
    states = {
        "square_avg": square_avgs,
        "grad_avg": grad_avgs,
        "momentum_buffer": momentum_buffer_list,
        "step": state_steps,
    }
    change_all(
        RMSprop,
        params,
        grads,
        states,
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
        maximize=maximize,
        capturable=capturable,
        differentiable=differentiable,
    )
