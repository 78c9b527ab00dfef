"""RAdam."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_c10 import Tensor
from argand_nn.optim.loop import (
    LoopOptimizer,
    Number,
    average,
    average_square,
    change_all,
    check_adam_options,
    count_step,
    learning_rate,
    move,
    root,
    with_decay,
    zero_averages,
)
from argand_nn.optim.optimizer import ParamsT

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["RAdam", "radam"]


class RAdam(LoopOptimizer):
    """Adam with a rectified variance of the adaptive rate (Liu et al., 2019).

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        betas: decay of the running means of the gradient and of its square.
        eps: added to the denominator.
        weight_decay: factor of the parameter added to its gradient.
        decoupled_weight_decay: shrink parameters by lr * weight_decay, apart from gradients.
        foreach: accepted, without effect.
        maximize: go up the gradient instead of down.
        capturable: keep step counts beside the parameters, for CUDA graphs.
        differentiable: record the step for autograd.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        check_adam_options(type(self).__name__, defaults)
        super().__init__(params, defaults)

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return zero_averages(parameter, group, "exp_avg", "exp_avg_sq")

    def update(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        lr = learning_rate(group)
        step = count_step(state, group)
        grad = with_decay(parameter, grad, group)
        average(state["exp_avg"], grad, beta1)
        average_square(state["exp_avg_sq"], grad, beta2)
        mean: Tensor = state["exp_avg"] / (1 - beta1**step)
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * step * beta2**step / (1 - beta2**step)  # of the variance's average

        def adapted() -> Tensor:
            scale: Tensor = aten.sqrt(state["exp_avg_sq"]) + group["eps"]
            return root(1 - beta2**step) * mean / scale

        if isinstance(length, Tensor):
            known = length > 5.0
            rectified = adapted() * _rectification(aten.where(known, length, limit), limit)
            mean = aten.where(known, rectified, mean)
        elif length > 5.0:
            mean = adapted() * _rectification(length, limit)
        move(parameter, mean, lr)


def _rectification(length: Number, limit: float) -> Number:
    """The factor of the adaptive rate whose variance comes from `length` values, `limit` in the end."""
    return root((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """One step of `RAdam` on lists of tensors: `params` and exp_avgs, exp_avg_sqs change in place, by `grads`.

    Args:
        params, grads: tensors and their gradients.
        exp_avgs, exp_avg_sqs: the state of each.
        state_steps: how many steps each has had, tensors of one element.
        foreach, has_complex: accepted, without effect.
        others: as `RAdam` has them.
    """
    states = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "step": state_steps}
    change_all(
        RAdam,
        params,
        grads,
        states,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        decoupled_weight_decay=decoupled_weight_decay,
        maximize=maximize,
        capturable=capturable,
        differentiable=differentiable,
        betas=(beta1, beta2),
    )
