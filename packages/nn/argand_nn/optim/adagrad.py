"""Adagrad."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_autograd import sparse_coo_tensor
from argand_c10 import Tensor
from argand_nn.optim.loop import (
    LoopOptimizer,
    change_all,
    count_step,
    learning_rate,
    move_ratio,
    new_step,
    with_decay,
)
from argand_nn.optim.optimizer import ParamsT, check_options, split_for_fused

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["Adagrad", "adagrad"]


def _move_sparse(
    parameter: Tensor, grad: Tensor, total: Tensor, step: Any, group: dict[str, Any]
) -> None:
    """An update of the elements that a coalesced gradient has."""
    if group["weight_decay"] != 0:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    rate = learning_rate(group) / (1 + (step - 1) * group["lr_decay"])
    total.add_(grad**2)
    root = aten.sqrt(total.sparse_mask(grad)._values()) + group["eps"]
    change = sparse_coo_tensor(grad._indices(), grad._values() / root, grad.shape)
    parameter.add_(change, alpha=-float(rate))


class Adagrad(LoopOptimizer):
    """Adagrad (Duchi et al., 2011): divides gradients by the root of the sum of their squares.

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        lr_decay: the rate is divided by 1 + steps before * lr_decay.
        weight_decay: factor of the parameter added to its gradient.
        initial_accumulator_value: where the sums of squares begin.
        eps: added to the denominator.
        foreach: accepted, without effect.
        maximize: go up the gradient instead of down.
        differentiable: record the step for autograd.
        fused: accepted for dense floating-point tensors, without effect.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        start = initial_accumulator_value
        check_options(
            "Adagrad",
            lr=(lr, float(lr) >= 0, "at least 0"),
            lr_decay=(lr_decay, lr_decay >= 0, "at least 0"),
            weight_decay=(weight_decay, weight_decay >= 0, "at least 0"),
            initial_accumulator_value=(start, start >= 0, "at least 0"),
            eps=(eps, eps >= 0, "at least 0"),
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": start,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter] = self.init_state(parameter.detach(), group)

    takes_sparse_gradients = True

    @property
    def _step_supports_amp_scaling(self) -> bool:
        return False

    def _step_group(self, params: list[Tensor], group: dict[str, Any]) -> None:
        if group["fused"]:
            split_for_fused(params, True, "Adagrad")  # refuses what a fused step does not take
        super()._step_group(params, group)

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        value = complex(start, start) if parameter.is_complex() else start
        return {
            "step": new_step(parameter, group),
            "sum": aten.full_like(parameter, value),
        }

    def update(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        step = count_step(state, group)
        if grad.is_sparse:
            _move_sparse(parameter, grad.coalesce(), state["sum"], step, group)
            return
        grad = with_decay(parameter, grad, group)
        rate = learning_rate(group) / (1 + (step - 1) * group["lr_decay"])
        state["sum"].addcmul_(grad, grad, value=1)
        move_ratio(parameter, grad, aten.sqrt(state["sum"]) + group["eps"], rate)


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adagrad` on lists of tensors: `params` and state_sums change in place, by `grads`.

    Args:
        params, grads: tensors and their gradients.
        state_sums: the state of each.
        state_steps: how many steps each has had, tensors of one element.
        grad_scale, found_inf: must be None.
        foreach, has_complex, fused, has_sparse_grad: accepted, without effect.
        others: as `Adagrad` has them.
    """
    if grad_scale is not None or found_inf is not None:
        raise RuntimeError(
            "adagrad: got grad_scale or found_inf, which no step here takes; unscale the gradients before"
        )
    states = {"sum": state_sums, "step": state_steps}
    change_all(
        Adagrad,
        params,
        grads,
        states,
        lr=lr,
        weight_decay=weight_decay,
        lr_decay=lr_decay,
        eps=eps,
        maximize=maximize,
        differentiable=differentiable,
    )
