"""An optimizer whose state is divided among the ranks (Rajbhandari et al., 2020, stage 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from argand_c10 import Tensor
from argand_distributed.collectives import broadcast_tensors
from argand_distributed.join import Joinable, JoinHook
from argand_distributed.objects import gather_object
from argand_distributed.world import ProcessGroup, get_group_rank, resolve
from argand_nn.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Each rank keeps the state of some of the parameters, updates these, and sends them to the others.

    Every rank must have all gradients, as `DistributedDataParallel` gives them.

    Args:
        params: the same on all ranks: tensors, or dicts with "params" and options of a group.
        optimizer_class: updates a rank's own parameters.
        process_group: the ranks; None: all.
        parameters_as_bucket_view, overlap_with_ddp: accepted; each rank's parameters are always sent together.
        defaults: the options of `optimizer_class`.
    """

    def __init__(
        self,
        params: Iterable[Any],
        optimizer_class: type[Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        self.process_group = resolve(process_group)
        self._class = optimizer_class
        self._options = defaults
        self._sizes = [0] * self.process_group.size()  # elements of each rank
        self._owners: dict[int, int] = {}  # by id of the parameter
        self._consolidated: dict[int, Any] | None = None
        self._optim: Optimizer | None = None
        super().__init__(params, defaults)
        self._optim = optimizer_class(self._own_groups(), **defaults)
        self._copy_options(self.optim.param_groups, self.param_groups)

    @property
    def optim(self) -> Optimizer:
        """The optimizer of this rank's own parameters."""
        assert self._optim is not None
        return self._optim

    # ---- who has what
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group; its parameters go to the ranks that have the least."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in sorted(group["params"], key=Tensor.numel, reverse=True):
            owner = min(range(len(self._sizes)), key=self._sizes.__getitem__)
            self._owners[id(p)] = owner
            self._sizes[owner] += p.numel()
        if self._optim is not None:
            self._optim.add_param_group(self._own(group))
            self._copy_options(self._optim.param_groups[-1:], [group])

    def _own(self, group: dict[str, Any]) -> dict[str, Any]:
        rank = self.process_group.rank()
        own = {key: value for key, value in group.items() if key != "param_names"}
        return {**own, "params": [p for p in group["params"] if self._owners[id(p)] == rank]}

    def _own_groups(self) -> list[dict[str, Any]]:
        return [self._own(group) for group in self.param_groups]

    @staticmethod
    def _copy_options(given: list[dict[str, Any]], taken: list[dict[str, Any]]) -> None:
        for a, b in zip(given, taken, strict=True):
            b.update((key, value) for key, value in a.items() if key != "params")

    # ---- steps
    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Updates this rank's parameters and receives the others'."""
        self._copy_options(self.param_groups, self.optim.param_groups)  # a scheduler changes ours
        loss = self.optim.step(closure, **kwargs)
        self._copy_options(self.optim.param_groups, self.param_groups)
        by_owner: dict[tuple[int, str], list[Tensor]] = {}
        for group in self.param_groups:
            for p in group["params"]:
                by_owner.setdefault((self._owners[id(p)], str(p.device)), []).append(p.detach())
        works = [
            broadcast_tensors(tensors, self.process_group, owner)
            for (owner, _), tensors in by_owner.items()
        ]
        for work in works:
            work.wait()
        return loss

    # ---- state
    def _numbers(self) -> dict[int, int]:
        every = [p for group in self.param_groups for p in group["params"]]
        return {id(p): i for i, p in enumerate(every)}

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Brings the whole state to the global rank `to`, whose `state_dict` may then be called. All ranks call it."""
        numbers = self._numbers()
        own = {numbers[id(p)]: dict(state) for p, state in self.optim.state.items()}
        receives = self.process_group.rank() == get_group_rank(self.process_group, to)
        parts: list[Any] | None = [None] * self.process_group.size() if receives else None
        gather_object(own, parts, to, self.process_group)
        if parts is not None:
            self._consolidated = {number: s for part in parts for number, s in part.items()}

    def state_dict(self) -> dict[str, Any]:
        """The whole state, as `optimizer_class` over all parameters would give it.

        Raises:
            RuntimeError: `consolidate_state_dict` has not brought it to this rank.
        """
        if self._consolidated is None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer.state_dict: the state is divided among the ranks; call consolidate_state_dict(to=this rank) on "
                "every rank first"
            )
        every = [p for group in self.param_groups for p in group["params"]]
        self.state.update((every[i], state) for i, state in self._consolidated.items())
        try:
            return super().state_dict()
        finally:
            self.state.clear()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a whole state; each rank keeps what belongs to its parameters."""
        super().load_state_dict(state_dict)
        rank = self.process_group.rank()
        self.optim.state.clear()
        for p, state in self.state.items():
            if self._owners[id(p)] == rank:
                self.optim.state[p] = state
        self.state.clear()
        self._consolidated = None
        self._copy_options(self.param_groups, self.optim.param_groups)

    # ---- uneven inputs
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """A rank without inputs goes on to update its own parameters."""
        return _ZeroJoinHook(self)

    @property
    def join_device(self) -> Any:
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> ProcessGroup:
        return self.process_group


class _ZeroJoinHook(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self.optimizer = optimizer

    def main_hook(self) -> None:
        self.optimizer.step()
