"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Callable
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
    root,
    with_decay,
    zero_averages,
)
from argand_nn.optim.optimizer import ParamsT, split_for_fused

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["Adam", "AdamW", "adam", "adamw"]


def _check_tensor_options(name: str, options: dict[str, Any]) -> None:
    """Raise ValueError for tensors among the rates that do not go with the other options."""
    betas = [isinstance(beta, Tensor) for beta in options["betas"]]
    if len(set(betas)) > 1:
        raise ValueError(f"{name}: got a float and a Tensor as betas, expected two of one kind")
    rates = (options["lr"], *options["betas"])
    if any(isinstance(rate, Tensor) and rate.numel() != 1 for rate in rates):
        raise ValueError(f"{name}: got lr or betas with several elements, expected one in each")
    together = options["foreach"] and not options["capturable"]
    if together and any(isinstance(rate, Tensor) for rate in rates):
        raise ValueError(
            f"{name}: got lr or betas as Tensors with foreach=True, expected floats, or capturable=True"
        )


class Adam(LoopOptimizer):
    """Adam (Kingma and Ba, 2014).

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        betas: decay of the running means of the gradient and of its square.
        eps: added to the denominator.
        weight_decay: factor of the parameter added to its gradient (AdamW: see there).
        amsgrad: divide by the largest running mean so far (Reddi et al., 2018).
        foreach: accepted, without effect.
        maximize: go up the gradient instead of down.
        capturable: keep step counts beside the parameters, for CUDA graphs.
        differentiable: record the step for autograd.
        fused: update all dense floating-point tensors in one operator; None does so where possible.
        decoupled_weight_decay: shrink parameters by lr * weight_decay, apart from gradients.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        check_adam_options(type(self).__name__, defaults)
        _check_tensor_options(type(self).__name__, defaults)
        super().__init__(params, defaults)

    def _step_group(self, params: list[Tensor], group: dict[str, Any]) -> None:
        together, loop = split_for_fused(params, _fused(group), type(self).__name__)
        if together:
            for p in together:
                self._count_at(p, p.device, group)
            self._step_fused(together, group)
        for p in loop:
            self._count_at(p, p.device if group["capturable"] else "cpu", group)
            self._update_one(p, group)

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else [])]
        return zero_averages(parameter, group, *names)

    def _count_at(self, parameter: Tensor, place: Any, group: dict[str, Any]) -> None:
        """Keep the step count where it is needed: a fused step may skip itself without asking the CPU."""
        state = self.state[parameter]
        if not state:
            state.update(self.init_state(parameter.detach(), group))
        state["step"] = state["step"].to(device=place)

    def _step_fused(self, params: list[Tensor], group: dict[str, Any]) -> None:
        states = [self.state[p] for p in params]
        beta1, beta2 = group["betas"]
        update: Callable[..., Any] = (
            aten.fused_adamw_ if group["decoupled_weight_decay"] else aten.fused_adam_
        )
        update(
            params,
            [p.grad for p in params],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["max_exp_avg_sq"] for state in states] if group["amsgrad"] else [],
            [state["step"] for state in states],  # the operator counts them up
            lr=float(group["lr"]),
            beta1=float(beta1),
            beta2=float(beta2),
            weight_decay=float(group["weight_decay"]),
            eps=float(group["eps"]),
            amsgrad=group["amsgrad"],
            maximize=group["maximize"],
            grad_scale=self.grad_scale,
            found_inf=self.found_inf,
        )

    def update(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        lr = learning_rate(group)
        beta1, beta2 = group["betas"]
        step = count_step(state, group)
        grad = with_decay(parameter, grad, group)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        average(mean, grad, beta1)
        average_square(square, grad, beta2)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            largest.copy_(aten.maximum(largest, square))
            square = largest
        # Both running means start at 0; these factors take that bias out.
        denominator = aten.sqrt(square) / root(1 - beta2**step) + group["eps"]
        move_ratio(parameter, mean, denominator, lr / (1 - beta1**step))


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `Adam` on lists of tensors: `params`, the averages and `state_steps` change in place, by `grads`.

    Args:
        params, grads: tensors and their gradients.
        exp_avgs, exp_avg_sqs: the running means of each.
        max_exp_avg_sqs: the largest means so far, with amsgrad; else empty.
        state_steps: how many steps each has had, tensors of one element.
        fused: whether one operator changes all of them.
        grad_scale, found_inf: with fused, what gradients are divided by, and whether to leave the step out, as a gradient scaler has them.
        foreach, has_complex: accepted, without effect.
        others: as `Adam` has them.
    """
    largest = max_exp_avg_sqs if amsgrad else []
    if fused:
        update = aten.fused_adamw_ if decoupled_weight_decay else aten.fused_adam_
        update(
            params,
            grads,
            exp_avgs,
            exp_avg_sqs,
            largest,
            state_steps,
            lr=float(lr),
            beta1=float(beta1),
            beta2=float(beta2),
            weight_decay=float(weight_decay),
            eps=float(eps),
            amsgrad=amsgrad,
            maximize=maximize,
            grad_scale=grad_scale,
            found_inf=found_inf,
        )
        return
    change_all(
        Adam,
        params,
        grads,
        {
            "exp_avg": exp_avgs,
            "exp_avg_sq": exp_avg_sqs,
            "max_exp_avg_sq": largest,
            "step": state_steps,
        },
        lr=lr,
        betas=(beta1, beta2),
        eps=eps,
        weight_decay=weight_decay,
        amsgrad=amsgrad,
        maximize=maximize,
        capturable=capturable,
        differentiable=differentiable,
        decoupled_weight_decay=decoupled_weight_decay,
    )


def adamw(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    *,
    amsgrad: bool,
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step of `AdamW` on lists of tensors; see `adam`."""
    adam(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        foreach,
        capturable,
        differentiable,
        fused,
        grad_scale,
        found_inf,
        has_complex,
        decoupled_weight_decay=True,
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
    )


def _fused(group: dict[str, Any]) -> bool | None:
    """Whether to fuse: the operator records nothing for autograd and takes rates as numbers."""
    by_tensors = group["differentiable"] or (
        group["capturable"] and isinstance(group["lr"], Tensor)
    )
    return False if by_tensors and not group["fused"] else group["fused"]


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017).

    Arguments as `Adam`; each step shrinks the parameters by lr * weight_decay first.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
