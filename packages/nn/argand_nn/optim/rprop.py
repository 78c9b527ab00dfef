"""Rprop."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_c10 import Tensor
from argand_nn.optim.loop import LoopOptimizer, change_all, count_step, new_step
from argand_nn.optim.optimizer import ParamsT, check_options

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["Rprop", "rprop"]


class Rprop(LoopOptimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993): steps by the gradient's sign alone.

    Args:
        params: parameters or groups of them.
        lr: size of the first step.
        etas: factors of the step's size where the sign changes, and where it stays.
        step_sizes: the smallest and the largest step.
        capturable: keep step counts beside the parameters, for CUDA graphs.
        foreach: accepted, without effect.
        maximize: go up the gradient instead of down.
        differentiable: record the step for autograd.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_options(
            "Rprop",
            lr=(lr, float(lr) >= 0, "at least 0"),
            shrinking=(etas[0], 0 < etas[0] < 1, "one in (0, 1)"),
            growing=(etas[1], etas[1] > 1, "one above 1"),
        )
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        lr = float(group["lr"])
        size = complex(lr, lr) if parameter.is_complex() else lr
        return {
            "step": new_step(parameter, group),
            "prev": aten.zeros_like(parameter),
            "step_size": aten.full_like(parameter, size),
        }

    def update(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        count_step(state, group)
        shrink, grow = group["etas"]
        smallest, largest = group["step_sizes"]
        # Not kept for backward, where `prev` below is changed in place.
        agreement = (grad * state["prev"]).detach()
        turned = agreement < 0
        shrink, same, grow = (
            aten.full((), factor, dtype=agreement.dtype, device=agreement.device)
            for factor in (shrink, 1.0, grow)
        )
        factor = aten.where(turned, shrink, aten.where(agreement > 0, grow, same))
        state["step_size"].mul_(factor).clamp_(smallest, largest)
        # After a turn the step is left out, and the next one keeps its size.
        grad = aten.masked_fill(grad, turned, 0.0)
        parameter.sub_(aten.sign(grad) * state["step_size"])
        state["prev"].copy_(grad)


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step of `Rprop` on lists of tensors: `params` and prevs, step_sizes change in place, by `grads`.

    Args:
        params, grads: tensors and their gradients.
        prevs, step_sizes: the state of each.
        state_steps: how many steps each has had, tensors of one element.
        foreach, has_complex: accepted, without effect.
        others: as `Rprop` has them.
    """
    states = {"prev": prevs, "step_size": step_sizes, "step": state_steps}
    change_all(
        Rprop,
        params,
        grads,
        states,
        maximize=maximize,
        capturable=capturable,
        differentiable=differentiable,
        etas=(etaminus, etaplus),
        step_sizes=(step_size_min, step_size_max),
    )
