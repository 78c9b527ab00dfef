"""Adafactor."""

from __future__ import annotations

import math
from typing import Any

import argand_aten as aten
from argand_c10 import Tensor, finfo
from argand_nn.optim.loop import LoopOptimizer, change_all, count_step, new_step
from argand_nn.optim.optimizer import ParamsT, check_options

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["Adafactor", "adafactor"]


class Adafactor(LoopOptimizer):
    """Adafactor (Shazeer and Stern, 2018): squared gradients kept as one row times one column.

    Args:
        params: real parameters or groups of them.
        lr: limit of the relative step size.
        beta2_decay: the running squares take each step with the weight step**beta2_decay.
        eps: floor of the squares (the dtype's epsilon if None) and of the parameters' size.
        d: limit of an update's root mean square.
        weight_decay: share of the rate by which parameters shrink in each step.
        foreach: accepted, without effect.
        maximize: go up the gradient instead of down.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_options(
            "Adafactor",
            lr=(lr, float(lr) >= 0, "at least 0"),
            beta2_decay=(beta2_decay, beta2_decay <= 0, "at most 0"),
            eps1=(0.0 if eps[0] is None else eps[0], eps[0] is None or eps[0] >= 0, "at least 0"),
            eps2=(eps[1], eps[1] >= 0, "at least 0"),
            d=(d, d >= 1, "at least 1"),
            weight_decay=(weight_decay, weight_decay >= 0, "at least 0"),
        )
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if parameter.is_complex():
            raise RuntimeError(
                "Adafactor: got a complex parameter, expected real ones; optimize its view_as_real"
            )
        state = {"step": new_step(parameter, group)}
        if parameter.dim() < 2:
            return {**state, "variance": aten.zeros_like(parameter)}
        shape = list(parameter.shape)
        return {
            **state,
            "row_var": parameter.new_zeros([*shape[:-1], 1]),
            "col_var": parameter.new_zeros([*shape[:-2], 1, shape[-1]]),
        }

    def update(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        lr, (floor, smallest) = float(group["lr"]), group["eps"]
        floor = finfo(parameter.dtype).eps if floor is None else floor
        step = float(count_step(state, group))
        weight = step ** group["beta2_decay"]
        squares = _running_squares(grad, state, weight, floor)
        change = aten.rsqrt(aten.clamp(squares, min=floor * floor)) * grad
        size = max(smallest, _root_mean_square(parameter))
        if group["weight_decay"] != 0:
            parameter.mul_(1 - lr * group["weight_decay"])
        rate = min(lr, 1 / math.sqrt(step)) * size
        parameter.add_(change, alpha=-rate / max(1.0, _root_mean_square(change) / group["d"]))


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    d: float,
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float,
    eps2: float,
    maximize: bool,
) -> None:
    """One step of `Adafactor` on lists of tensors: `params` and their state change in place, by `grads`.

    Args:
        params, grads: tensors and their gradients.
        row_vars, col_vars: the squares of each that has two dimensions or more, else None.
        variances: those of each that has fewer, else None.
        state_steps: how many steps each has had, tensors of one element.
        foreach, has_complex: accepted, without effect.
        grad_scale, found_inf: must be None.
        eps1, eps2: the two of `eps`.
        others: as `Adafactor` has them.
    """
    assert grad_scale is None and found_inf is None, (
        "Grad scaling should occur outside of optimizer.step()"
    )
    states: Any = {
        "row_var": row_vars, "col_var": col_vars, "variance": variances, "step": state_steps,
    }  # fmt: skip
    change_all(
        Adafactor, params, grads, states, d=d, lr=lr, beta2_decay=beta2_decay,
        weight_decay=weight_decay, eps=(eps1, eps2), maximize=maximize,
    )  # fmt: skip


def _running_squares(grad: Tensor, state: dict[str, Any], weight: float, floor: float) -> Tensor:
    """The estimate of the squared gradient after `grad` has entered it with `weight`."""
    squares = grad * grad
    if grad.dim() < 2:
        variance: Tensor = state["variance"]
        return variance.lerp_(squares, weight)
    rows, columns = state["row_var"], state["col_var"]
    rows.lerp_(aten.mean(squares, -1, True), weight)
    columns.lerp_(aten.mean(squares, -2, True), weight)
    return aten.matmul(rows, columns) / aten.clamp(aten.mean(rows, -2, True), min=floor)


def _root_mean_square(value: Tensor) -> float:
    return float(aten.norm(value)) / math.sqrt(max(1, value.numel()))
