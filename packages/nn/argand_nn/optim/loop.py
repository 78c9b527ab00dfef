"""`LoopOptimizer`: optimizers that update one parameter after the other by operators on tensors.

Their formulas take numbers and 0-d tensors alike. A step count is a number in Python, except with
`capturable` or `differentiable`: then it stays a tensor beside its parameter, so that a CUDA graph
replays the counting, or autograd sees it.
"""

from __future__ import annotations

import math
from typing import Any

import argand_aten as aten
from argand_autograd import set_grad_enabled
from argand_c10 import Tensor, float32
from argand_nn.optim.optimizer import (
    Closure,
    Optimizer,
    check_options,
    refuse_sparse_gradients,
    run_closure,
)

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["LoopOptimizer", "Number", "change_all"]

Number = float | Tensor


class LoopOptimizer(Optimizer):
    """A subclass defines `init_state` and `update`."""

    takes_sparse_gradients = False

    def init_state(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """The state of a parameter before its first update."""
        raise NotImplementedError(
            f"{type(self).__name__}.init_state: not defined; a LoopOptimizer must define it"
        )

    def update(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """Change `parameter` and the tensors of `state` in place; complex ones come as pairs of reals."""
        raise NotImplementedError(
            f"{type(self).__name__}.update: not defined; a LoopOptimizer must define it"
        )

    def step(self, closure: Closure | None = None) -> Any:
        """Change the parameters by their gradients; see `Optimizer.step`."""
        with set_grad_enabled(self.defaults.get("differentiable", False)):
            loss = run_closure(closure)
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                if not self.takes_sparse_gradients:
                    refuse_sparse_gradients(params, type(self))
                self._step_group(params, group)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As `Optimizer.load_state_dict`; counts that older versions kept as numbers become tensors."""
        super().load_state_dict(state_dict)
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state.get(parameter, {})
                for key, value in state.items():
                    if isinstance(value, int | float):
                        state[key] = new_step(parameter, group).fill_(value)

    def _step_group(self, params: list[Tensor], group: dict[str, Any]) -> None:
        for parameter in params:
            self._update_one(parameter, group)

    def _update_one(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state.update(self.init_state(parameter.detach(), group))
        elif group.get("differentiable"):
            # The graph of the steps before keeps the tensors that it read.
            state.update({k: v.clone() for k, v in state.items()})
        assert parameter.grad is not None
        self.change(parameter, parameter.grad, state, group)

    def change(
        self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """`update` down the gradient, or up where the group says so, complex tensors as pairs of reals."""
        if group["maximize"]:
            grad = -grad
        if parameter.is_complex():
            views = {key: _as_real(value) for key, value in state.items()}
            self.update(_as_real(parameter), _as_real(grad), views, group)
        else:
            self.update(parameter, grad, state, group)


def change_all(
    optimizer: type[LoopOptimizer],
    params: list[Tensor],
    grads: list[Tensor],
    states: dict[str, list[Tensor]],
    **group: Any,
) -> None:
    """One step of an optimizer whose state is in lists by name, each with an entry a parameter, or empty where the options need none.

    Raises:
        RuntimeError: step counts are no tensors.
    """
    if not all(isinstance(step, Tensor) for step in states["step"]):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors"
        )
    made = object.__new__(optimizer)
    for i, (parameter, grad) in enumerate(zip(params, grads, strict=True)):
        state = {name: values[i] for name, values in states.items() if values}
        made.change(parameter, grad, state, group)


def _as_real(value: Any) -> Any:
    return aten.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value


def check_adam_options(
    optimizer: str, options: dict[str, Any], **more: tuple[object, bool, str]
) -> None:
    """Check what the optimizers of Adam's family share, and `more` as `check_options` does."""
    lr, (beta1, beta2) = options["lr"], options["betas"]
    check_options(
        optimizer,
        lr=(lr, float(lr) >= 0, "at least 0"),
        beta1=(beta1, 0 <= beta1 < 1, "one in [0, 1)"),
        beta2=(beta2, 0 <= beta2 < 1, "one in [0, 1)"),
        eps=(options["eps"], options["eps"] >= 0, "at least 0"),
        weight_decay=(options["weight_decay"], options["weight_decay"] >= 0, "at least 0"),
        **more,
    )


def zero_averages(parameter: Tensor, group: dict[str, Any], *names: str) -> dict[str, Any]:
    """The state of a parameter before its first update: a step count and running averages."""
    return {
        "step": new_step(parameter, group),
        **{name: aten.zeros_like(parameter) for name in names},
    }


def new_step(parameter: Tensor, group: dict[str, Any]) -> Tensor:
    """A step count of 0: on the CPU, or beside the parameter where it must not be read."""
    place = parameter.device if group.get("capturable") else "cpu"
    return aten.zeros((), dtype=float32, device=place)


def count_step(state: dict[str, Any], group: dict[str, Any]) -> Number:
    """The count of this step, beginning with 1; a tensor where the group's options ask for it."""
    step = state["step"]
    step.add_(1)
    return step if stays_on_device(group) else float(step)


def stays_on_device(group: dict[str, Any]) -> bool:
    """Whether the group's scalars stay tensors."""
    return bool(group.get("capturable") or group.get("differentiable"))


def learning_rate(group: dict[str, Any]) -> Number:
    """The group's rate; a tensor where the group's options ask for it and it is one."""
    lr = group["lr"]
    return lr if isinstance(lr, Tensor) and stays_on_device(group) else float(lr)


def with_decay(parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> Tensor:
    """The gradient with that of weight_decay / 2 * parameter**2; with `decoupled_weight_decay` the parameter is shrunk instead."""
    decay: float = group["weight_decay"]
    if decay == 0:
        return grad
    if not group.get("decoupled_weight_decay"):
        return grad + decay * parameter
    parameter.mul_(1 - learning_rate(group) * decay)
    return grad


def move(parameter: Tensor, direction: Tensor, rate: Number) -> None:
    """parameter -= rate * direction, in place."""
    if isinstance(rate, Tensor):
        parameter.sub_(rate * direction)
    else:
        parameter.add_(direction, alpha=-rate)


def move_ratio(parameter: Tensor, direction: Tensor, scale: Tensor, rate: Number) -> None:
    """parameter -= rate * direction / scale, in place."""
    if isinstance(rate, Tensor):
        parameter.sub_(rate * direction / scale)
    else:
        parameter.addcdiv_(direction, scale, value=-rate)


def root(value: Number) -> Number:
    """Square root of a number or tensor."""
    return aten.sqrt(value) if isinstance(value, Tensor) else math.sqrt(value)


def average(mean: Tensor, value: Tensor, decay: float) -> None:
    """mean = decay * mean + (1 - decay) * value, in place."""
    mean.lerp_(value, 1 - decay)


def average_square(mean: Tensor, value: Tensor, decay: float) -> None:
    """mean = decay * mean + (1 - decay) * value**2, in place."""
    mean.mul_(decay).addcmul_(value, value, value=1 - decay)
