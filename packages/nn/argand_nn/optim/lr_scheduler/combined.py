"""Schedulers of schedulers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from argand_nn.optim.lr_scheduler.base import LRScheduler, check_optimizer, set_lr
from argand_nn.optim.lr_scheduler.plateau import ReduceLROnPlateau
from argand_nn.optim.optimizer import Optimizer

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["ChainedScheduler", "SequentialLR"]


class SequentialLR(LRScheduler):
    """One scheduler after the other; scheduler i + 1 starts at epoch `milestones[i]`."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        check_optimizer("SequentialLR", optimizer)
        if not schedulers or len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: got {len(schedulers)} schedulers and {len(milestones)} milestones, "
                "expected one milestone less than schedulers"
            )
        _check_schedulers("SequentialLR", schedulers, optimizer)
        self.optimizer = optimizer
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        # Building the schedulers has set rates; start again from the initial ones, the first only.
        for group in optimizer.param_groups:
            set_lr(group, group["initial_lr"])
        _undo_step(self._schedulers)
        first = self._schedulers[0]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch."""
        if epoch is not None:
            raise TypeError("SequentialLR.step: got an epoch, expected none")
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
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
        _check_schedulers("ChainedScheduler", schedulers, self.optimizer)
        self._schedulers = list(schedulers)
        self._last_lr = self._group_lrs()

    def step(self, epoch: int | None = None) -> None:
        """Step every scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._group_lrs()

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


def _check_schedulers(name: str, schedulers: Sequence[LRScheduler], optimizer: Optimizer) -> None:
    for i, scheduler in enumerate(schedulers):
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name}: got a ReduceLROnPlateau as scheduler {i}, expected schedulers whose step "
                "takes no measure"
            )
        if scheduler.optimizer is not optimizer:
            raise ValueError(
                f"{name}: got a scheduler of another optimizer as scheduler {i}, expected one only"
            )


def _undo_step(schedulers: Sequence[LRScheduler]) -> None:
    for scheduler in schedulers:
        if isinstance(scheduler, SequentialLR | ChainedScheduler):
            _undo_step(scheduler._schedulers)
        else:
            scheduler.last_epoch -= 1
