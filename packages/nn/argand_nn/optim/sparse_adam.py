"""SparseAdam."""

from __future__ import annotations

import math
from typing import Any

import argand_aten as aten
from argand_autograd import no_grad, sparse_coo_tensor
from argand_c10 import Tensor
from argand_nn.optim.optimizer import Closure, Optimizer, ParamsT, check_options, run_closure

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["SparseAdam", "sparse_adam"]


class SparseAdam(Optimizer):
    """Adam for gradients of layout sparse_coo: running averages and parameters change where the gradient has elements.

    Args:
        params: dense parameters or groups of them.
        lr: learning rate.
        betas: decay of the running averages of the gradient and of its square.
        eps: added to the denominator.
        maximize: go up the gradient instead of down.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        beta1, beta2 = betas
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError(f"SparseAdam: got lr of {lr.numel()} elements, expected 1")
        check_options(
            "SparseAdam",
            lr=(lr, float(lr) > 0, "above 0"),
            eps=(eps, eps > 0, "above 0"),
            beta1=(beta1, 0 <= beta1 < 1, "one in [0, 1)"),
            beta2=(beta2, 0 <= beta2 < 1, "one in [0, 1)"),
        )
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        for i, group in enumerate(self.param_groups):
            sparse = [[i, j] for j, p in enumerate(group["params"]) if p.is_sparse]
            if sparse:
                raise ValueError(
                    f"SparseAdam: got sparse parameters at {sparse}, expected dense ones; only gradients may be sparse"
                )

    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters by their gradients; see `Optimizer.step`.

        Raises:
            RuntimeError: a gradient is dense; nothing is changed.
        """
        with no_grad():
            loss = run_closure(closure)
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                if not all(p.grad.is_sparse for p in params):
                    raise RuntimeError(
                        "SparseAdam does not support dense gradients, please consider Adam instead"
                    )
                self._step_group(params, group)
        return loss

    def _step_group(self, params: list[Tensor], group: dict[str, Any]) -> None:
        for parameter in params:
            state = self.state[parameter]
            if not state:
                state["step"] = 0
                state["exp_avg"] = aten.zeros_like(parameter.detach())
                state["exp_avg_sq"] = aten.zeros_like(parameter.detach())
            state["step"] += 1
        states = [self.state[p] for p in params]
        beta1, beta2 = group["betas"]
        sparse_adam(
            params,
            [p.grad for p in params if p.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["step"] for state in states],
            eps=group["eps"],
            beta1=beta1,
            beta2=beta2,
            lr=float(group["lr"]),
            maximize=group["maximize"],
        )


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """One step of `SparseAdam` on lists of tensors: `params` and the averages change in place, by the sparse `grads`.

    Args:
        params, grads: tensors and their gradients.
        exp_avgs, exp_avg_sqs: the running averages of each.
        state_steps: how many steps each has had, this one included.
        others: as `SparseAdam` has them.
    """
    states = zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True)
    for parameter, grad, exp_avg, exp_avg_sq, step in states:
        grad = (-grad if maximize else grad).coalesce()
        if grad._values().numel() == 0:
            continue
        mean, square = (
            _decayed(average, grad, target, 1 - beta)
            for average, target, beta in (
                (exp_avg, grad._values(), beta1),
                (exp_avg_sq, grad._values() ** 2, beta2),
            )
        )
        size = lr * math.sqrt(1 - beta2**step) / (1 - beta1**step)
        change = -size * (mean / (aten.sqrt(square) + eps))
        parameter.add_(_at_places_of(grad, change))


def _at_places_of(grad: Tensor, values: Tensor) -> Tensor:
    return sparse_coo_tensor(grad._indices(), values, grad.shape, is_coalesced=True)


def _decayed(average: Tensor, grad: Tensor, target: Tensor, weight: float) -> Tensor:
    """The average's elements at the places of `grad`, after they have moved towards `target`."""
    old: Tensor = average.sparse_mask(grad)._values()
    change = (target - old) * weight
    average.add_(_at_places_of(grad, change))
    return old + change
