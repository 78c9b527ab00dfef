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


def set_lr(group: dict[str, Any], lr: float) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(lr)
    else:
        group["lr"] = lr


def check_optimizer(name: str, optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{name}: got {type(optimizer).__name__}, expected an Optimizer")


class LRScheduler:
    """Base class: a subclass defines `get_lr`, the groups' rates at epoch `self.last_epoch`.

    Args:
        optimizer: whose groups' rates are set.
        last_epoch: the epoch to continue after; -1 starts and remembers the present rates.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(type(self).__name__, optimizer)
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
            set_lr(group, lr)
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


def per_group(name: str, value: float | Sequence[float], count: int) -> list[float]:
    if not isinstance(value, list | tuple):
        return [float(value)] * count  # type: ignore[arg-type]
    if len(value) != count:
        raise ValueError(
            f"{name}: got {len(value)} values, expected {count}, one a parameter group"
        )
    return [float(v) for v in value]
