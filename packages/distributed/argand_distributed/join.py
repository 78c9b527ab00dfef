"""Training on uneven inputs: ranks that have none left go through the motions of the others' collectives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import argand_c10 as c10
from argand_aten import full
from argand_c10 import Tensor
from argand_distributed.collectives import ReduceOp, all_reduce
from argand_distributed.work import Work
from argand_distributed.world import ProcessGroup

__all__ = ["Join", "JoinHook", "Joinable"]

_UNEVEN = (
    "Join: a rank has no inputs left while others have, so all ranks end; give every rank as many inputs, or leave "
    "throw_on_early_termination out"
)


class JoinHook:
    """What a rank without inputs does for a `Joinable`."""

    def main_hook(self) -> None:
        """In place of each iteration: the collectives that the others call in it, in their order."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """When all ranks are without inputs. `is_last_joiner`: this one was among the last that had some."""


@dataclass
class _JoinConfig:
    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False
    ranks_with_inputs: int = 0  # in this iteration, as a rank without inputs knows it


class Joinable(ABC):
    """Something that calls collectives once an iteration; it calls `Join.notify_join_context(self)` before the first."""

    _join_config = _JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of this object; the arguments are those that `Join` got."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Where `Join` makes its own tensors."""

    @property
    @abstractmethod
    def join_process_group(self) -> ProcessGroup:
        """The ranks that take part; one group for all objects of a `Join`."""


class Join:
    """Within it ranks may run different numbers of iterations.

    Args:
        joinables: what calls collectives, in the order of their calls in an iteration.
        enable: False: do nothing, for inputs that are known to be even.
        throw_on_early_termination: end all ranks by an error when the first one is without inputs.
        kwargs: for the hooks; `DistributedDataParallel` takes `divide_by_initial_world_size`.

    Raises:
        ValueError: there are no joinables, or they have different process groups.
        RuntimeError: with `throw_on_early_termination`, on every rank, when some are without inputs.
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        groups = [j.join_process_group for j in joinables]
        if not groups or any(g is not groups[0] for g in groups):
            raise ValueError(
                f"Join: got process groups {groups}, expected at least one joinable, all of one group"
            )
        self._joinables = list(joinables)
        self._hooks = [j.join_hook(**kwargs) for j in joinables]
        self._enable = enable
        self._throws = throw_on_early_termination
        self._group, self._device = groups[0], joinables[0].join_device
        for i, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, i == 0)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._enable and kind is None:
                self._shadow()
        finally:
            for joinable in self._joinables:
                joinable._join_config = _JoinConfig()

    def _shadow(self) -> None:
        is_last = True
        while active := _sum(self._device, self._group, 0):
            if self._throws:
                _sum(self._device, self._group, 1)
                raise RuntimeError(_UNEVEN)
            is_last = False
            for joinable in self._joinables:
                joinable._join_config.ranks_with_inputs = active
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(is_last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tells ranks that have joined that this one begins an iteration.

        Returns:
            Of the first joinable of an enabled `Join`: the work whose result is the number of ranks with inputs; else None.
        """
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        count = full((1,), 1.0, device=joinable.join_device)
        work = all_reduce(count, group=joinable.join_process_group, async_op=True)
        if config.throw_on_early_termination and _sum(
            joinable.join_device, joinable.join_process_group, 0
        ):
            raise RuntimeError(_UNEVEN)
        return work


def _sum(device: Any, group: ProcessGroup, value: int) -> int:
    """The sum of the ranks' values."""
    total: Tensor = full((1,), float(value), device=device, dtype=c10.float32)
    all_reduce(total, ReduceOp.SUM, group)
    return int(total.item())
