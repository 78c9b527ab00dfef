"""NAdam."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_c10 import Tensor
from argand_nn.optim.loop import (
    LoopOptimizer,
    average,
    average_square,
    change_all,
    check_adam_options,
    count_step,
    learning_rate,
    move_ratio,
    new_step,
    root,
    stays_on_device,
    with_decay,
)
from argand_nn.optim.optimizer import ParamsT

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["NAdam", "nadam"]


class NAdam(LoopOptimizer):
    """Adam with Nesterov momentum (Dozat, 2016).

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        betas: decay of the running means of the gradient and of its square.
        eps: added to the denominator.
        weight_decay: factor of the parameter added to its gradient.
        momentum_decay: how fast the momentum's schedule approaches betas[0].
        decoupled_weight_decay: shrink parameters by lr * weight_decay, apart from gradients.
        foreach: accepted, without effect.
        maximize: go up the gradient instead of down.
        capturable: keep step counts beside the parameters, for CUDA graphs.
        differentiable: record the step for autograd.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        check_adam_options(
            type(self).__name__,
            defaults,
            momentum_decay=(momentum_decay, momentum_decay >= 0, "at least 0"),
        )
        super().__init__(params, defaults)

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        step = new_step(parameter, group)
        return {
            "step": step,
            "mu_product": aten.ones_like(step),
            "exp_avg": aten.zeros_like(parameter),
            "exp_avg_sq": aten.zeros_like(parameter),
        }

    def update(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        beta1, beta2 = group["betas"]
        lr = learning_rate(group)
        step = count_step(state, group)
        grad = with_decay(parameter, grad, group)
        decay = group["momentum_decay"]
        momentum = beta1 * (1 - 0.5 * 0.96 ** (step * decay))
        next_momentum = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * decay))
        state["mu_product"].mul_(momentum)
        product = state["mu_product"] if stays_on_device(group) else float(state["mu_product"])
        average(state["exp_avg"], grad, beta1)
        average_square(state["exp_avg_sq"], grad, beta2)
        scale = aten.sqrt(state["exp_avg_sq"]) / root(1 - beta2**step) + group["eps"]
        move_ratio(parameter, grad, scale, lr * (1 - momentum) / (1 - product))
        rate = lr * next_momentum / (1 - product * next_momentum)
        move_ratio(parameter, state["exp_avg"], scale, rate)


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """One step of `NAdam` on lists of tensors: `params` and exp_avgs, exp_avg_sqs, mu_products change in place, by `grads`.

    Args:
        params, grads: tensors and their gradients.
        exp_avgs, exp_avg_sqs, mu_products: the state of each.
        state_steps: how many steps each has had, tensors of one element.
        foreach, has_complex: accepted, without effect.
        others: as `NAdam` has them.
    """
    states = {
        "exp_avg": exp_avgs,
        "exp_avg_sq": exp_avg_sqs,
        "mu_product": mu_products,
        "step": state_steps,
    }
    change_all(
        NAdam,
        params,
        grads,
        states,
        lr=lr,
        weight_decay=weight_decay,
        momentum_decay=momentum_decay,
        eps=eps,
        decoupled_weight_decay=decoupled_weight_decay,
        maximize=maximize,
        capturable=capturable,
        differentiable=differentiable,
        betas=(beta1, beta2),
    )
