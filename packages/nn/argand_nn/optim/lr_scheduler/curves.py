"""Schedulers by a formula of the epoch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from argand_nn.optim.lr_scheduler.base import LRScheduler, check_optimizer, set_lr
from argand_nn.optim.optimizer import Optimizer

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "StepLR",
]


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(epoch)`; one function, or one a group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        check_optimizer("LambdaLR", optimizer)
        self.lr_lambdas = _functions("LambdaLR", lr_lambda, len(optimizer.param_groups))
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer; of the functions, only the fields of callable objects."""
        return _with_function_states(super().state_dict(), self.lr_lambdas)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        super().load_state_dict(_take_function_states(state_dict, self.lr_lambdas))

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        return [
            base * function(self.last_epoch)
            for base, function in zip(self.base_lrs, self.lr_lambdas, strict=True)
        ]


class MultiplicativeLR(LRScheduler):
    """The present rate times `lr_lambda(epoch)`; one function, or one a group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        check_optimizer("MultiplicativeLR", optimizer)
        self.lr_lambdas = _functions("MultiplicativeLR", lr_lambda, len(optimizer.param_groups))
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer; of the functions, only the fields of callable objects."""
        return _with_function_states(super().state_dict(), self.lr_lambdas)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        super().load_state_dict(_take_function_states(state_dict, self.lr_lambdas))

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        if self._is_initial:
            return self._present()
        return [
            lr * function(self.last_epoch)
            for lr, function in zip(self._present(), self.lr_lambdas, strict=True)
        ]


class StepLR(LRScheduler):
    """Times `gamma` every `step_size` epochs."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._present()
        return [lr * self.gamma for lr in self._present()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times `gamma` at each epoch of `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        times = self.milestones[self.last_epoch]
        return [lr * self.gamma**times for lr in self._present()] if times else self._present()

    def _get_closed_form_lr(self) -> list[float]:
        passed = sum(
            times for milestone, times in self.milestones.items() if milestone <= self.last_epoch
        )
        return [base * self.gamma**passed for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        if self._is_initial:
            return self._present()
        return [lr * self.gamma for lr in self._present()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The rate times `factor` until epoch `total_iters`."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: got factor {factor}, expected one in [0, 1]")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._present()]
        if self.last_epoch == self.total_iters:
            return [lr / self.factor for lr in self._present()]
        return self._present()

    def _get_closed_form_lr(self) -> list[float]:
        factor = 1.0 if self.last_epoch >= self.total_iters else self.factor
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """The rate times a factor that goes evenly from start to end in `total_iters` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(
                f"LinearLR: got start_factor {start_factor} and end_factor {end_factor}, expected "
                "them in (0, 1] and [0, 1]"
            )
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        share = min(epoch, self.total_iters) / self.total_iters if self.total_iters else 1.0
        return self.start_factor + (self.end_factor - self.start_factor) * share

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._present()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        change = self._factor(self.last_epoch) / self._factor(self.last_epoch - 1)
        return [lr * change for lr in self._present()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The rate times (1 - epoch / total_iters) ** power, 0 from there on."""

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        return float((1.0 - min(epoch, self.total_iters) / self.total_iters) ** self.power)

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._present()
        change = self._factor(self.last_epoch) / self._factor(self.last_epoch - 1)
        return [lr * change for lr in self._present()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate to `eta_min` in `T_max` epochs (Loshchilov, Hutter, 2016).

    Afterwards it goes up again, and so on.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        epoch, half = self.last_epoch, self.T_max
        if self._is_initial:
            return self._present()
        before = 1 + math.cos(math.pi * (epoch - 1) / half)
        if (epoch - 1 - half) % (2 * half) == 0:
            # The rate was eta_min: no factor leads away from there, so step by the difference.
            rise = (1 - math.cos(math.pi / half)) / 2
            return [
                lr + (base - self.eta_min) * rise
                for lr, base in zip(self._present(), self.base_lrs, strict=True)
            ]
        change = (1 + math.cos(math.pi * epoch / half)) / before
        return [self.eta_min + (lr - self.eta_min) * change for lr in self._present()]

    def _get_closed_form_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines with restarts; the first lasts `T_0` epochs, each next `T_mult` times longer.

    `step` also takes fractions of epochs (Loshchilov and Hutter, 2016).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(
                f"CosineAnnealingWarmRestarts: got T_0 {T_0}, expected a positive integer"
            )
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(
                f"CosineAnnealingWarmRestarts: got T_mult {T_mult}, expected an integer from 1"
            )
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to `epoch`, which may be a fraction."""
        if epoch is None:
            epoch = max(self.last_epoch + 1, 0)
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(
                    f"CosineAnnealingWarmRestarts: got epoch {epoch}, expected one from 0"
                )
            self._enter(epoch)
        self.last_epoch = math.floor(epoch)
        for group, lr in zip(self.optimizer.param_groups, self._rates(), strict=True):
            set_lr(group, lr)
        self._last_lr = self._group_lrs()

    def _enter(self, epoch: float) -> None:
        if self.T_mult == 1:
            self.T_cur, self.T_i = epoch % self.T_0, self.T_0
            return
        length, start = self.T_0, 0
        while epoch >= start + length:
            start += length
            length *= self.T_mult
        self.T_cur, self.T_i = epoch - start, length


def _functions(name: str, value: Any, count: int) -> list[Callable[[int], float]]:
    if not isinstance(value, list | tuple):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name}: got {len(value)} functions, expected {count}, one a group")
    return list(value)


def _with_function_states(
    state: dict[str, Any], functions: list[Callable[[int], float]]
) -> dict[str, Any]:
    state["lr_lambdas"] = [
        None if type(f).__name__ in ("function", "method") else dict(f.__dict__) for f in functions
    ]
    return state


def _take_function_states(
    state: dict[str, Any], functions: list[Callable[[int], float]]
) -> dict[str, Any]:
    state = dict(state)
    for function, fields in zip(functions, state.pop("lr_lambdas"), strict=True):
        if fields is not None:
            function.__dict__.update(fields)
    return state
