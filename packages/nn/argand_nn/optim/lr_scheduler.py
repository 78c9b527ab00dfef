"""Learning-rate schedulers: `step()` after each epoch (or batch) sets the groups' rates.

They change the present rate by a factor or difference where that is possible, so that several of
them can act on one optimizer.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from argand_c10 import Tensor
from argand_nn.optim.optimizer import Optimizer

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


def _set_lr(group: dict[str, Any], lr: float) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(lr)
    else:
        group["lr"] = lr


def _check_optimizer(name: str, optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{name}: got {type(optimizer).__name__}, expected an Optimizer")


class LRScheduler:
    """Base class: a subclass defines `get_lr`, the groups' rates at epoch `self.last_epoch`.

    Args:
        optimizer: whose groups' rates are set.
        last_epoch: the epoch to continue after; -1 starts and remembers the present rates.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(type(self).__name__, optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: group {i} has no 'initial_lr', expected it with "
                    f"last_epoch={last_epoch}; load the optimizer's state first"
                )
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._last_lr: list[float] = []
        self.step()

    def get_lr(self) -> list[float]:
        """The groups' rates at `self.last_epoch`, from those at the epoch before."""
        raise NotImplementedError(
            f"{type(self).__name__}.get_lr: not defined; an LRScheduler subclass must define get_lr"
        )

    def get_last_lr(self) -> list[float]:
        """The rates that the last step set."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to `epoch`, and set the rates."""
        if self._step_count == 1 and self.optimizer._step_calls == 0:
            warnings.warn(
                f"{type(self).__name__}.step: called before optimizer.step, so the first rate is "
                "skipped; step the optimizer first",
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is None:
            self.last_epoch += 1
            rates = self.get_lr()
        else:
            self.last_epoch = epoch
            rates = self._lr_at(epoch)
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            _set_lr(group, lr)
        self._last_lr = [float(group["lr"]) for group in self.optimizer.param_groups]

    def _lr_at(self, epoch: int) -> list[float]:
        """The rates at `epoch` without history, where a scheduler knows them."""
        return self.get_lr()

    def _present(self) -> list[float]:
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All of the scheduler but the optimizer and functions."""
        return {
            key: value
            for key, value in self.__dict__.items()
            if key != "optimizer" and not callable(value)
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The initial rate times `lr_lambda(epoch)`; one function, or one a group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer("LambdaLR", optimizer)
        self.lr_lambdas = _functions("LambdaLR", lr_lambda, len(optimizer.param_groups))
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer; of the functions, only the fields of callable objects."""
        return _with_function_states(super().state_dict(), self.lr_lambdas)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        super().load_state_dict(_take_function_states(state_dict, self.lr_lambdas))

    def get_lr(self) -> list[float]:
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
        _check_optimizer("MultiplicativeLR", optimizer)
        self.lr_lambdas = _functions("MultiplicativeLR", lr_lambda, len(optimizer.param_groups))
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All but the optimizer; of the functions, only the fields of callable objects."""
        return _with_function_states(super().state_dict(), self.lr_lambdas)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        super().load_state_dict(_take_function_states(state_dict, self.lr_lambdas))

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
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
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._present()
        return [lr * self.gamma for lr in self._present()]

    def _lr_at(self, epoch: int) -> list[float]:
        return [base * self.gamma ** (epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times `gamma` at each epoch of `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        times = Counter(self.milestones)[self.last_epoch]
        return [lr * self.gamma**times for lr in self._present()] if times else self._present()

    def _lr_at(self, epoch: int) -> list[float]:
        passed = bisect_right(self.milestones, epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._present()
        return [lr * self.gamma for lr in self._present()]

    def _lr_at(self, epoch: int) -> list[float]:
        return [base * self.gamma**epoch for base in self.base_lrs]


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
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._present()]
        if self.last_epoch == self.total_iters:
            return [lr / self.factor for lr in self._present()]
        return self._present()

    def _lr_at(self, epoch: int) -> list[float]:
        factor = 1.0 if epoch >= self.total_iters else self.factor
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
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._present()]
        if self.last_epoch > self.total_iters:
            return self._present()
        change = self._factor(self.last_epoch) / self._factor(self.last_epoch - 1)
        return [lr * change for lr in self._present()]

    def _lr_at(self, epoch: int) -> list[float]:
        return [base * self._factor(epoch) for base in self.base_lrs]


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
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._present()
        change = self._factor(self.last_epoch) / self._factor(self.last_epoch - 1)
        return [lr * change for lr in self._present()]

    def _lr_at(self, epoch: int) -> list[float]:
        return [base * self._factor(epoch) for base in self.base_lrs]


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
        epoch, half = self.last_epoch, self.T_max
        if epoch == 0:
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

    def _lr_at(self, epoch: int) -> list[float]:
        share = (1 + math.cos(math.pi * epoch / self.T_max)) / 2
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
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to `epoch`, which may be a fraction."""
        if epoch is None:
            epoch = max(self.last_epoch + 1, 0)
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(
                    f"CosineAnnealingWarmRestarts: got epoch {epoch}, expected one from 0"
                )
            self._enter(epoch)
        self.last_epoch = math.floor(epoch)
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            _set_lr(group, lr)
        self._last_lr = self._present()

    def _enter(self, epoch: float) -> None:
        if self.T_mult == 1:
            self.T_cur, self.T_i = epoch % self.T_0, self.T_0
            return
        length, start = self.T_0, 0
        while epoch >= start + length:
            start += length
            length *= self.T_mult
        self.T_cur, self.T_i = epoch - start, length


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and down far below the start, in one run (Smith and Topin, 2017).

    Args:
        optimizer: whose groups' rates (and momentum) are set; step after each batch.
        max_lr: the highest rate, one or one a group.
        total_steps: steps of the cycle, or give `epochs` and `steps_per_epoch`.
        pct_start: share of the cycle that goes up.
        anneal_strategy: cos or linear.
        cycle_momentum: move momentum (or Adam's beta1) opposite to the rate.
        base_momentum: the lowest momentum.
        max_momentum: the highest momentum.
        div_factor: max_lr over the first rate.
        final_div_factor: the first rate over the last.
        three_phase: go down to the first rate as long as up, then to the last.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer("OneCycleLR", optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "OneCycleLR: got no total_steps, expected it or epochs and steps_per_epoch"
                )
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0:
            raise ValueError(f"OneCycleLR: got {total_steps} steps, expected a positive number")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: got pct_start {pct_start}, expected one in [0, 1]")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: got anneal_strategy {anneal_strategy!r}, expected 'cos' or 'linear'"
            )
        self.total_steps = total_steps
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        self._phases = _one_cycle_phases(total_steps, pct_start, three_phase)
        if last_epoch == -1:
            count = len(optimizer.param_groups)
            for group, lr in zip(
                optimizer.param_groups, _per_group("max_lr", max_lr, count), strict=True
            ):
                group["max_lr"] = lr
                group["initial_lr"] = lr / div_factor
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            self._start_momentum(optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _start_momentum(
        self,
        optimizer: Optimizer,
        base_momentum: float | Sequence[float],
        max_momentum: float | Sequence[float],
        last_epoch: int,
    ) -> None:
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "OneCycleLR: got an optimizer without momentum, expected one with it; "
                "pass cycle_momentum=False"
            )
        self._use_beta1 = "betas" in optimizer.defaults
        if last_epoch != -1:
            return
        count = len(optimizer.param_groups)
        lows = _per_group("base_momentum", base_momentum, count)
        highs = _per_group("max_momentum", max_momentum, count)
        for group, low, high in zip(optimizer.param_groups, lows, highs, strict=True):
            group["base_momentum"], group["max_momentum"] = low, high

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"OneCycleLR: got step {step}, expected at most total_steps {self.total_steps}"
            )
        # The phase that the step lies in: the first that ends at or after it, else the last.
        number = next((i for i, phase in enumerate(self._phases) if step <= phase[0]), -1)
        number %= len(self._phases)
        start = self._phases[number - 1][0] if number else 0.0
        end, lr_ends, momentum_ends = self._phases[number]
        share = (step - start) / (end - start) if end > start else 1.0
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[lr_ends[0]], group[lr_ends[1]], share))
            if self.cycle_momentum:
                momentum = self._between(group[momentum_ends[0]], group[momentum_ends[1]], share)
                if self._use_beta1:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum
        return rates

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return start + (end - start) * share
        return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


def _one_cycle_phases(
    total_steps: int, pct_start: float, three_phase: bool
) -> list[tuple[float, tuple[str, str], tuple[str, str]]]:
    """Last step, rates and momenta (from, to) of each phase."""
    up = (("initial_lr", "max_lr"), ("max_momentum", "base_momentum"))
    down = ("base_momentum", "max_momentum")
    top = float(pct_start * total_steps) - 1
    last = total_steps - 1
    if three_phase:
        return [
            (top, *up),
            (2 * pct_start * total_steps - 2, ("max_lr", "initial_lr"), down),
            (last, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")),
        ]
    return [(top, *up), (last, ("max_lr", "min_lr"), down)]


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a measure has not improved for more than `patience` steps.

    Args:
        optimizer: whose groups' rates are set.
        mode: min if the measure should fall, max if it should rise.
        factor: of the rate, below 1.
        patience: steps without improvement that are allowed.
        threshold: how much better counts as an improvement.
        threshold_mode: rel (a share of the best) or abs.
        cooldown: steps after a reduction in which nothing counts.
        min_lr: lower limit of the rate, one or one a group.
        eps: smaller changes of the rate are not made.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        _check_optimizer("ReduceLROnPlateau", optimizer)
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: got factor {factor}, expected one below 1")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau: got mode {mode!r} and threshold_mode {threshold_mode!r}, "
                "expected 'min' or 'max' and 'rel' or 'abs'"
            )
        self.optimizer = optimizer
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.cooldown_counter = cooldown, 0
        self.min_lrs = _per_group("min_lr", min_lr, len(optimizer.param_groups))
        self.eps = eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = 0
        self.last_epoch = 0
        self._last_lr = self._present()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take in the measure of an epoch and reduce the rates if it is time."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, lowest in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                old = float(group["lr"])
                new = max(old * self.factor, lowest)
                if old - new > self.eps:
                    _set_lr(group, new)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._present()

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction was made less than `cooldown` steps ago."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float) -> bool:
        if self.threshold_mode == "rel":
            share = 1 - self.threshold if self.mode == "min" else 1 + self.threshold
            limit = self.best * share
        else:
            limit = self.best + (-self.threshold if self.mode == "min" else self.threshold)
        return value < limit if self.mode == "min" else value > limit


class SequentialLR(LRScheduler):
    """One scheduler after the other; scheduler i + 1 starts at epoch `milestones[i]`."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer("SequentialLR", optimizer)
        if not schedulers or len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: got {len(schedulers)} schedulers and {len(milestones)} milestones, "
                "expected one milestone less than schedulers"
            )
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ValueError(
                "SequentialLR: got a scheduler of another optimizer, expected one only"
            )
        self.optimizer = optimizer
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        # Building the schedulers has set rates; start again from the initial ones, the first only.
        for group in optimizer.param_groups:
            _set_lr(group, group["initial_lr"])
        first = self._schedulers[0]
        first.last_epoch -= 1
        first._step_count = 0
        first.step()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch."""
        if epoch is not None:
            raise TypeError("SequentialLR.step: got an epoch, expected none")
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The epoch and the state of every scheduler."""
        result = {
            key: value
            for key, value in self.__dict__.items()
            if key not in ("optimizer", "_schedulers")
        }
        result["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        state = dict(state_dict)
        for scheduler, inner in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            scheduler.load_state_dict(inner)
        self.__dict__.update(state)


class ChainedScheduler(LRScheduler):
    """Several schedulers that all act at each step."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler: got no schedulers, expected at least one")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        if any(scheduler.optimizer is not self.optimizer for scheduler in schedulers):
            raise ValueError("ChainedScheduler: got schedulers of several optimizers, expected one")
        self._schedulers = list(schedulers)
        self._last_lr = self._present()

    def step(self, epoch: int | None = None) -> None:
        """Step every scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._present()

    def state_dict(self) -> dict[str, Any]:
        """The state of every scheduler."""
        return {
            "_last_lr": self._last_lr,
            "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        for scheduler, inner in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(inner)
        self._last_lr = state_dict["_last_lr"]


def _per_group(name: str, value: float | Sequence[float], count: int) -> list[float]:
    if not isinstance(value, list | tuple):
        return [float(value)] * count  # type: ignore[arg-type]
    if len(value) != count:
        raise ValueError(
            f"{name}: got {len(value)} values, expected {count}, one a parameter group"
        )
    return [float(v) for v in value]


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
