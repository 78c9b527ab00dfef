"""Adamax."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_c10 import Tensor
from argand_nn.optim.loop import (
    LoopOptimizer,
    average,
    change_all,
    check_adam_options,
    count_step,
    learning_rate,
    move_ratio,
    with_decay,
    zero_averages,
)
from argand_nn.optim.optimizer import ParamsT

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["Adamax", "adamax"]


class Adamax(LoopOptimizer):
    """Adam by the infinity norm (Kingma and Ba, 2014).

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        betas: decay of the running mean of the gradient and of its running maximum.
        eps: added to the gradient's size.
        weight_decay: factor of the parameter added to its gradient.
        foreach: accepted, without effect.
        maximize: go up the gradient instead of down.
        differentiable: record the step for autograd.
        capturable: keep step counts beside the parameters, for CUDA graphs.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        check_adam_options(type(self).__name__, defaults)
        super().__init__(params, defaults)

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return zero_averages(parameter, group, "exp_avg", "exp_inf")

    def update(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        step = count_step(state, group)
        grad = with_decay(parameter, grad, group)
        average(state["exp_avg"], grad, beta1)
        largest = state["exp_inf"]
        largest.copy_(aten.maximum(largest * beta2, aten.abs(grad) + group["eps"]))
        move_ratio(parameter, state["exp_avg"], largest, learning_rate(group) / (1 - beta1**step))


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
) -> None:
    """One step of `Adamax` on lists of tensors: `params` and exp_avgs, exp_infs change in place, by `grads`.

    Args:
        params, grads: tensors and their gradients.
        exp_avgs, exp_infs: the state of each.
        state_steps: how many steps each has had, tensors of one element.
        foreach, has_complex: accepted, without effect.
        others: as `Adamax` has them.
    """
    states = {"exp_avg": exp_avgs, "exp_inf": exp_infs, "step": state_steps}
    change_all(
        Adamax,
        params,
        grads,
        states,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        capturable=capturable,
        differentiable=differentiable,
        betas=(beta1, beta2),
    )
