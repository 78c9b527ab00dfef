"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import argand_aten as aten
from argand_autograd import no_grad
from argand_c10 import Tensor, float32
from argand_nn.optim.optimizer import (
    Closure,
    Optimizer,
    ParamsT,
    check_options,
    run_closure,
    split_for_fused,
)

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
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
        capturable: must be False.
        differentiable: must be False.
        fused: update all dense floating-point tensors in one operator; None does so where possible.
        decoupled_weight_decay: shrink parameters by lr * weight_decay, apart from gradients.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
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
        check_options(
            type(self).__name__,
            lr=(lr, float(lr) >= 0, "at least 0"),
            beta1=(betas[0], 0 <= betas[0] < 1, "one in [0, 1)"),
            beta2=(betas[1], 0 <= betas[1] < 1, "one in [0, 1)"),
            eps=(eps, eps >= 0, "at least 0"),
            weight_decay=(weight_decay, weight_decay >= 0, "at least 0"),
            capturable=(capturable, not capturable, "False"),
            differentiable=(differentiable, not differentiable, "False"),
        )
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "foreach": foreach,
            "maximize": maximize,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    @no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters by their gradients; see `Optimizer.step`."""
        loss = run_closure(closure)
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            together, loop = split_for_fused(params, group["fused"], type(self).__name__)
            for p in together:
                self._init_state(p, group["amsgrad"], fused=True)
            for p in loop:
                self._init_state(p, group["amsgrad"], fused=False)
            if together:
                self._step_fused(together, group)
            for p in loop:
                self._step_one(p, group)
        return loss

    def _init_state(self, parameter: Tensor, amsgrad: bool, fused: bool) -> None:
        state = self.state[parameter]
        # Beside the parameter where a fused step counts: it may skip itself without asking the CPU.
        place = parameter.device if fused else "cpu"
        if state:
            state["step"] = state["step"].to(device=place)
            return
        like = parameter.detach()
        state["step"] = aten.zeros((), dtype=float32, device=place)
        state["exp_avg"] = aten.zeros_like(like)
        state["exp_avg_sq"] = aten.zeros_like(like)
        if amsgrad:
            state["max_exp_avg_sq"] = aten.zeros_like(like)

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

    def _step_one(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        lr, eps, decay = float(group["lr"]), float(group["eps"]), float(group["weight_decay"])
        beta1, beta2 = group["betas"]
        state["step"].add_(1)
        step = float(state["step"])
        grad = -parameter.grad if group["maximize"] else parameter.grad
        if decay != 0:
            if group["decoupled_weight_decay"]:
                parameter.mul_(1 - lr * decay)
            else:
                grad = grad + decay * parameter
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.mul_(beta1).add_(grad, alpha=1 - beta1)
        square.mul_(beta2).add_(grad * grad, alpha=1 - beta2)
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            largest.copy_(aten.maximum(largest, square))
            square = largest
        # Both running means start at 0; these factors take that bias out.
        denominator = aten.sqrt(square) / math.sqrt(1 - beta2**step) + eps
        parameter.sub_(mean / denominator * (lr / (1 - beta1**step)))


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017).

    Arguments as `Adam`; each step shrinks the parameters by lr * weight_decay first.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
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
