"""Schedulers by a measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from argand_nn.optim.lr_scheduler.base import (
    LRScheduler,
    check_optimizer,
    per_group,
    set_lr,
    warn_of_epoch,
)
from argand_nn.optim.optimizer import Optimizer

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["ReduceLROnPlateau"]


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
        check_optimizer("ReduceLROnPlateau", optimizer)
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
        self.default_min_lr = (
            None if isinstance(min_lr, Sequence) else min_lr
        )  # of groups that come later
        self.min_lrs = per_group("min_lr", min_lr, len(optimizer.param_groups))
        self.eps = eps
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.best = self.mode_worse
        self.num_bad_epochs = 0
        self.last_epoch = 0
        self._last_lr = self._group_lrs()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take in the measure of an epoch and reduce the rates if it is time."""
        current = float(metrics)
        if epoch is not None:
            warn_of_epoch("ReduceLROnPlateau")
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            if len(self.min_lrs) != len(self.optimizer.param_groups):
                if self.default_min_lr is None:
                    raise RuntimeError(
                        f"ReduceLROnPlateau: got {len(self.optimizer.param_groups)} groups and min_lr for "
                        f"{len(self.min_lrs)}, expected as many; assign min_lrs when a group is added"
                    )
                self.min_lrs = [self.default_min_lr] * len(self.optimizer.param_groups)
            for group, lowest in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                old = float(group["lr"])
                new = max(old * self.factor, lowest)
                if old - new > self.eps:
                    set_lr(group, new)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._group_lrs()

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
