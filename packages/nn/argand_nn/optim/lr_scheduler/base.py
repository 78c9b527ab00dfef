"""`LRScheduler`, and what schedulers share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from argand_c10 import Tensor
from argand_nn.optim.optimizer import Optimizer

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["LRScheduler"]


def set_lr(group: dict[str, Any], lr: float | Tensor) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(lr)
    else:
        group["lr"] = lr


def lr_of(group: dict[str, Any]) -> float | Tensor:
    """The group's rate, of its own type and not to be changed with it."""
    lr: float | Tensor = group["lr"]
    return lr.clone() if isinstance(lr, Tensor) else lr


def warn_of_epoch(name: str) -> None:
    warnings.warn(
        f"{name}.step: got an epoch, which is deprecated; call step() after each epoch",
        UserWarning,
        stacklevel=3,
    )


def check_optimizer(name: str, optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{name}: got {type(optimizer).__name__}, expected an Optimizer")


class LRScheduler:
    """Base class: a subclass defines `get_lr`, the groups' rates at epoch `self.last_epoch`.

    Args:
        optimizer: whose groups' rates are set.
        last_epoch: the epoch to continue after; -1 starts and remembers the present rates.
    """

    # While the constructor takes its step: rates that follow from those before stay as they are.
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(type(self).__name__, optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", lr_of(group))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{type(self).__name__}: group {i} has no 'initial_lr', expected it with "
                    f"last_epoch={last_epoch}; load the optimizer's state first"
                )
        self.base_lrs: list[float] = [float(g["initial_lr"]) for g in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float | Tensor] = []
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        self._get_lr_called_within_step = False
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[float]:
        """The groups' rates at `self.last_epoch`, from those at the epoch before."""
        raise NotImplementedError(
            f"{type(self).__name__}.get_lr: not defined; an LRScheduler subclass must define get_lr"
        )

    def _rates(self, epoch: int | None = None) -> list[float]:
        """The rates that a step sets."""
        self._get_lr_called_within_step = True
        try:
            return self.get_lr() if epoch is None else self._get_closed_form_lr()
        finally:
            self._get_lr_called_within_step = False

    def _warn_outside_of_step(self) -> None:
        """What every `get_lr` does first: between steps it answers for no epoch."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def get_last_lr(self) -> list[float | Tensor]:
        """The rates that the last step set, of the groups' types."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to `epoch`, and set the rates."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", True):
            warnings.warn(
                f"{type(self).__name__}.step: called before optimizer.step, so the first rate is "
                "skipped; step the optimizer first",
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warn_of_epoch(type(self).__name__)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        rates = self._rates(epoch)
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            set_lr(group, lr)
        self._last_lr = self._group_lrs()

    def _get_closed_form_lr(self) -> list[float]:
        """The rates at `self.last_epoch` without history, where a scheduler knows them."""
        return self.get_lr()

    def _group_lrs(self) -> list[float | Tensor]:
        return [lr_of(group) for group in self.optimizer.param_groups]

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


def per_group(name: str, value: float | Sequence[float], count: int) -> list[float]:
    if not isinstance(value, list | tuple):
        return [float(value)] * count  # type: ignore[arg-type]
    if len(value) != count:
        raise ValueError(
            f"{name}: got {len(value)} values, expected {count}, one a parameter group"
        )
    return [float(v) for v in value]
