"""Schedulers of rate and momentum together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypedDict

from argand_nn.optim.lr_scheduler.base import LRScheduler, check_optimizer, per_group, set_lr
from argand_nn.optim.optimizer import Optimizer

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["CyclicLR", "OneCycleLR"]


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
        check_optimizer("OneCycleLR", optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError(
                    "OneCycleLR: got no total_steps, expected it or epochs and steps_per_epoch"
                )
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"OneCycleLR: got {total_steps} steps, expected a positive integer")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: got pct_start {pct_start}, expected one in [0, 1]")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"OneCycleLR: got anneal_strategy {anneal_strategy!r}, expected 'cos' or 'linear'"
            )
        self.total_steps = total_steps
        self._anneal_func_type, self.cycle_momentum = anneal_strategy, cycle_momentum
        self._schedule_phases = _one_cycle_phases(total_steps, pct_start, three_phase)
        if last_epoch == -1:
            count = len(optimizer.param_groups)
            for group, lr in zip(
                optimizer.param_groups, per_group("max_lr", max_lr, count), strict=True
            ):
                group["max_lr"] = lr
                group["initial_lr"] = lr / div_factor
                group["min_lr"] = group["initial_lr"] / final_div_factor
        if cycle_momentum:
            _start_momentum(
                "OneCycleLR", optimizer, base_momentum, max_momentum, starts=last_epoch == -1
            )
            self.use_beta1 = "betas" in optimizer.defaults
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"OneCycleLR: got step {step}, expected at most total_steps {self.total_steps}"
            )
        # The phase that the step lies in: the first that ends at or after it, else the last.
        phases = self._schedule_phases
        number = next((i for i, phase in enumerate(phases) if step <= phase["end_step"]), -1)
        number %= len(phases)
        phase = phases[number]
        start = phases[number - 1]["end_step"] if number else 0.0
        end = phase["end_step"]
        share = (step - start) / (end - start) if end > start else 1.0
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                low, high = group[phase["start_momentum"]], group[phase["end_momentum"]]
                _set_momentum(group, self._between(low, high, share))
        return rates

    def _between(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return start + (end - start) * share
        return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


class _Phase(TypedDict):
    """The last step of a phase, and the groups' entries that rate and momentum go from and to."""

    end_step: float
    start_lr: str
    end_lr: str
    start_momentum: str
    end_momentum: str


def _one_cycle_phases(total_steps: int, pct_start: float, three_phase: bool) -> list[_Phase]:
    def phase(end: float, lr: str, to_lr: str, momentum: str, to_momentum: str) -> _Phase:
        return {
            "end_step": end,
            "start_lr": lr,
            "end_lr": to_lr,
            "start_momentum": momentum,
            "end_momentum": to_momentum,
        }

    last = total_steps - 1
    low, high = "base_momentum", "max_momentum"
    phases = [phase(float(pct_start * total_steps) - 1, "initial_lr", "max_lr", high, low)]
    if three_phase:
        down = float(2 * pct_start * total_steps) - 2
        phases.append(phase(down, "max_lr", "initial_lr", low, high))
        return [*phases, phase(last, "initial_lr", "min_lr", high, high)]
    return [*phases, phase(last, "max_lr", "min_lr", low, high)]


class CyclicLR(LRScheduler):
    """Up and down between two rates, again and again (Smith, 2015).

    Args:
        optimizer: whose groups' rates (and momentum) are set; step after each batch.
        base_lr: the lowest rate, one or one a group.
        max_lr: the highest rate, one or one a group.
        step_size_up: steps from the lowest to the highest.
        step_size_down: steps back; `step_size_up` if None.
        mode: triangular, triangular2 (half as high in each cycle) or exp_range (times gamma**step).
        gamma: for exp_range.
        scale_fn: the height's factor by cycle or step; replaces `mode`.
        scale_mode: whether `scale_fn` takes the number of the cycle (from 1) or iterations.
        cycle_momentum: move momentum (or Adam's beta1) opposite to the rate.
        base_momentum: the lowest momentum.
        max_momentum: the highest momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer("CyclicLR", optimizer)
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(
                f"CyclicLR: got mode {mode!r}, expected 'triangular', 'triangular2' or 'exp_range', "
                "or a scale_fn"
            )
        count = len(optimizer.param_groups)
        lows = per_group("base_lr", base_lr, count)
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows, strict=True):
                set_lr(group, low)
        self.max_lrs = per_group("max_lr", max_lr, count)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _start_momentum(
                "CyclicLR", optimizer, base_momentum, max_momentum, starts=last_epoch == -1
            )
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = per_group("base_momentum", base_momentum, count)
            self.max_momentums = per_group("max_momentum", max_momentum, count)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def scale_fn(self, x: float) -> float:
        """The height's factor at cycle or step `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return math.pow(0.5, x - 1)
        return math.pow(self.gamma, x) if self.mode == "exp_range" else 1.0

    def state_dict(self) -> dict[str, Any]:
        """All of the scheduler but the optimizer; of a `scale_fn` the attributes, if it is an object that has some."""
        fn = self._scale_fn_custom
        attributes = None if fn is None or isinstance(fn, FunctionType) else dict(vars(fn))
        return {**super().state_dict(), "_scale_fn_custom": attributes}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if attributes is not None:
            vars(self._scale_fn_custom).update(attributes)

    def get_lr(self) -> list[float]:
        self._warn_outside_of_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        share = 1 + self.last_epoch / self.total_size - cycle
        up = self.step_ratio
        height = share / up if share <= up else (share - 1) / (up - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            ends = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, ends, strict=True):
                _set_momentum(group, high - (high - low) * height)
        return [
            low + (high - low) * height
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]


def _start_momentum(
    name: str,
    optimizer: Optimizer,
    base_momentum: float | Sequence[float],
    max_momentum: float | Sequence[float],
    starts: bool,
) -> None:
    """Check that the optimizer has momentum; write its ends into the groups where a run starts."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            f"{name}: got an optimizer without momentum, expected one with it; "
            "pass cycle_momentum=False"
        )
    if not starts:
        return
    count = len(optimizer.param_groups)
    lows = per_group("base_momentum", base_momentum, count)
    highs = per_group("max_momentum", max_momentum, count)
    for group, low, high in zip(optimizer.param_groups, lows, highs, strict=True):
        group["base_momentum"], group["max_momentum"] = low, high


def _set_momentum(group: dict[str, Any], momentum: float) -> None:
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
