"""Data parallelism: every rank has the whole module and a part of the data; gradients are averaged while backward runs."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import argand_autograd as autograd
from argand_aten import empty
from argand_autograd import early_gradients
from argand_c10 import Module, Parameter, Tensor, bfloat16, float16, tensor
from argand_distributed.collectives import ReduceOp, all_reduce, broadcast_tensors
from argand_distributed.join import Join, Joinable, JoinHook
from argand_distributed.objects import all_gather_object
from argand_distributed.work import Future, Work
from argand_distributed.world import ProcessGroup, resolve

_MIB = 1 << 20
CommHook = Callable[[Any, "GradBucket"], "Future[Tensor]"]


@dataclass
class _Bucket:
    """Gradients that travel together, in one vector."""

    index: int
    parameters: list[Parameter]
    buffer: Tensor
    views: list[Tensor]
    waiting: int = 0
    future: Future[Any] | None = None
    touched: list[bool] = field(default_factory=list)  # by this backward
    early: list[bool] = field(default_factory=list)  # touched before `.grad` has the gradient


class GradBucket:
    """A bucket, as a communication hook sees it."""

    def __init__(self, bucket: _Bucket, last: bool) -> None:
        self._bucket = bucket
        self._last = last
        self._buffer = bucket.buffer

    def index(self) -> int:
        return self._bucket.index

    def buffer(self) -> Tensor:
        """All gradients of the bucket, one after the other, in one vector."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replaces what `buffer` gives; the hook's result becomes the gradients in any case."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The gradients; views of the buffer."""
        return list(self._bucket.views)

    def parameters(self) -> list[Parameter]:
        return list(self._bucket.parameters)

    def is_last(self) -> bool:
        return self._last


class DistributedDataParallel(Module, Joinable):
    """Wraps a module for training on several processes.

    Parameters and buffers are rank 0's at the start. In backward, gradients are put into buckets as they come; a bucket that is full
    is averaged over the ranks while backward goes on, in the same order on all ranks. When backward ends, `.grad` of every parameter is the average.

    Args:
        module: the same on all ranks.
        device_ids, output_device, dim: accepted for programs that pass them; the module stays where it is.
        broadcast_buffers: copy rank 0's buffers to all ranks before each forward in training.
        process_group: the ranks; None: all.
        bucket_cap_mb: size of a bucket in MiB; the first one, which is the first to be ready, has 1 MiB.
        find_unused_parameters: parameters that a forward's result does not depend on are found, and count as zero gradients.
        gradient_as_bucket_view: `.grad` of parameters are views of the buckets, which saves memory and copies.
        static_graph: the same parameters are used in every iteration; those that are not used are found as with find_unused_parameters.

    Raises:
        RuntimeError: the ranks have different parameters, or no parameter needs gradients.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        self.module = module
        self.process_group = resolve(process_group)
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters or static_graph
        self.static_graph = static_graph
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.require_backward_grad_sync = True
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [
            (n, p) for n, p in module.named_parameters() if p.requires_grad and n not in ignored
        ]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel: got a module without parameters that require gradients; it needs no wrapping"
            )
        self._names = {id(p): n for n, p in named}
        self._buffers_to_send = [b for n, b in module.named_buffers() if n not in ignored]
        if init_sync:
            self._check_same([(n, list(p.shape), str(p.dtype)) for n, p in named])
            self._broadcast([p for _, p in named] + self._buffers_to_send)
        self._reducer = _Reducer([p for _, p in named], self, int((bucket_cap_mb or 25) * _MIB))

    def _check_same(self, described: list[Any]) -> None:
        everyone: list[Any] = [None] * self.process_group.size()
        all_gather_object(everyone, [list(d) for d in described], self.process_group)
        for rank, other in enumerate(everyone):
            if other != everyone[0]:
                different = next(
                    (f"{a} and {b}" for a, b in zip(everyone[0], other, strict=False) if a != b),
                    f"{len(everyone[0])} and {len(other)} parameters",
                )
                raise RuntimeError(
                    f"DistributedDataParallel: ranks 0 and {rank} have different modules: {different}; every rank must build the same one"
                )

    def _broadcast(self, tensors: Sequence[Tensor], root: int = 0) -> None:
        by_device: dict[str, list[Tensor]] = {}
        for t in tensors:
            by_device.setdefault(str(t.device), []).append(t.detach())
        for group in by_device.values():
            broadcast_tensors(group, self.process_group, root).wait()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        averages = autograd.is_grad_enabled() and self.require_backward_grad_sync
        sends = bool(
            averages and self.broadcast_buffers and self.training and self._buffers_to_send
        )
        root = 0
        if self._join_config.enable:
            self._reducer.ranks_with_inputs = Join.notify_join_context(self)
            root = self._agree(averages, sends).root
        if not averages:
            return self.module(*inputs, **kwargs)
        self._reducer.prepare()
        if sends:
            self._broadcast(self._buffers_to_send, root)
        result = self.module(*inputs, **kwargs)
        if self.find_unused_parameters:
            self._reducer.mark_unused(result)
        return result

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within it gradients only add up on each rank; the first backward of a forward outside of it averages the sum."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # ---- uneven inputs
    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """A context in which ranks may have different numbers of inputs: `Join([self], ...)`."""
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What this rank does when it has no inputs left; `divide_by_initial_world_size=False` averages over those that have some."""
        self._reducer.divides_by_all = kwargs.get("divide_by_initial_world_size", True)
        return _DDPJoinHook(self)

    @property
    def join_device(self) -> Any:
        return self._reducer.buckets[0].buffer.device

    @property
    def join_process_group(self) -> ProcessGroup:
        return self.process_group

    def _agree(self, averages: bool, sends: bool, has_inputs: bool = True) -> _Agreed:
        """What the ranks that have inputs do in this iteration, and the last one of them."""
        rank = self.process_group.rank() + 1 if has_inputs else 0
        values = tensor([float(averages), float(sends), float(rank)], device=self.join_device)
        all_reduce(values, ReduceOp.MAX, self.process_group)
        found = values.tolist()
        return _Agreed(bool(found[0]), bool(found[1]), int(found[2]) - 1)

    def register_comm_hook(self, state: Any, hook: CommHook) -> None:
        """Replaces the averaging: hook(state, bucket) gives a Future of the vector that the bucket becomes."""
        if self._reducer.hook is not None:
            raise RuntimeError("register_comm_hook: there is one already; a module has at most one")
        self._reducer.hook = hook
        self._reducer.hook_state = state


@dataclass(frozen=True)
class _Agreed:
    averages: bool
    sends: bool  # buffers
    root: int


class _DDPJoinHook(JoinHook):
    def __init__(self, ddp: DistributedDataParallel) -> None:
        self.ddp = ddp

    def main_hook(self) -> None:
        agreed = self.ddp._agree(False, False, has_inputs=False)
        if agreed.sends:
            self.ddp._broadcast(self.ddp._buffers_to_send, agreed.root)
        if agreed.averages:
            self.ddp._reducer.shadow(self.ddp._join_config.ranks_with_inputs)

    def post_hook(self, is_last_joiner: bool) -> None:
        """All ranks get the weights of one that has had the most iterations."""
        root = self.ddp._agree(False, False, has_inputs=is_last_joiner).root
        parameters = [p for b in self.ddp._reducer.buckets for p in b.parameters]
        self.ddp._broadcast([*parameters, *self.ddp._buffers_to_send], root)


class _Reducer:
    """The buckets, and what the hooks of parameters do with them."""

    def __init__(
        self, parameters: list[Parameter], owner: DistributedDataParallel, capacity: int
    ) -> None:
        self.group = owner.process_group
        self.owner = weakref.ref(owner)
        self.hook: CommHook | None = None
        self.hook_state: Any = None
        self.ranks_with_inputs: Work | None = None
        self.divides_by_all = True
        self.active = False  # a backward with averaging is expected, or under way
        self.next = 0  # bucket to be sent: all ranks send them in the same order
        self.buckets = _make_buckets(parameters, capacity)
        self.places = {
            id(p): (bucket, i) for bucket in self.buckets for i, p in enumerate(bucket.parameters)
        }
        # Kept, so that a node is the same object whenever it is met.
        self.accumulators = {id(p): _accumulator(p) for p in parameters}
        self.accumulating = (
            0  # parameters whose gradients are in their buckets, and not in `.grad` yet
        )
        early_gradients.listen(list(parameters), self.ready_early)
        self.handles = [
            p.register_post_accumulate_grad_hook(_weak_method(self, "ready")) for p in parameters
        ]

    def prepare(self) -> None:
        """Before a forward whose backward averages."""
        if self.active and any(any(b.touched) for b in self.buckets):
            self._fail_unfinished()
        for bucket in self.buckets:
            bucket.waiting = len(bucket.parameters)
            bucket.touched = [False] * len(bucket.parameters)
            bucket.early = [False] * len(bucket.parameters)
            bucket.future = None
        self.next = 0
        self.accumulating = 0
        self.active = True

    def _fail_unfinished(self) -> None:
        owner = self.owner()
        names = [
            owner._names[id(p)] if owner else "?"
            for bucket in self.buckets
            for p, touched in zip(bucket.parameters, bucket.touched, strict=True)
            if not touched
        ][::-1]
        self.active = False
        raise RuntimeError(
            f"DistributedDataParallel: the last backward gave no gradient to {', '.join(names[:5])}"
            + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            + ", so gradients were not averaged; use every parameter in the loss, or give find_unused_parameters=True"
        )

    def mark_unused(self, result: Any) -> None:
        """Parameters that no tensor of `result` depends on are ready: they will get no gradient."""
        used = _history(result)
        for bucket in self.buckets:
            for i, p in enumerate(bucket.parameters):
                if self.accumulators[id(p)] not in used:
                    self._touch(bucket, i, p)
        self._send()

    def expects(self) -> bool:
        """Whether a gradient that comes now is to be averaged."""
        owner = self.owner()
        return self.active and owner is not None and owner.require_backward_grad_sync

    def ready_early(self, parameter: Tensor, gradient: Tensor) -> None:
        """A compiled backward has a gradient, which `.grad` will get when all of it has run."""
        bucket, i = self.places[id(parameter)]
        view, before = bucket.views[i], parameter.grad
        if not self.expects() or bucket.touched[i]:
            return
        if before is not None and before.data_ptr() == view.data_ptr():
            return  # what is added to `.grad` goes into the bucket
        with autograd.no_grad():
            view.copy_(gradient)
            if before is not None:
                view.add_(before)
        bucket.early[i] = bucket.touched[i] = True
        bucket.waiting -= 1
        self.accumulating += 1
        self._send()

    def ready(self, parameter: Parameter) -> None:
        """`.grad` of a parameter is complete. Runs on the thread of backward."""
        if not self.expects():
            return
        owner = self.owner()
        assert owner is not None
        bucket, i = self.places[id(parameter)]
        if bucket.early[i]:
            bucket.early[i] = False
            self.accumulating -= 1
            self._send()
            return
        if bucket.touched[i]:
            raise RuntimeError(
                f"DistributedDataParallel: {owner._names[id(parameter)]} got a gradient twice since the last forward; call forward once for "
                "each backward, and use parameters that checkpointing recomputes in one forward only"
            )
        self._touch(bucket, i, parameter)
        self._send()

    def _touch(self, bucket: _Bucket, i: int, parameter: Parameter) -> None:
        view = bucket.views[i]
        bucket.touched[i] = True
        bucket.waiting -= 1
        with autograd.no_grad():
            grad = parameter.grad
            if grad is None:
                view.zero_()
            elif grad.data_ptr() != view.data_ptr():
                view.copy_(grad)

    def _send(self) -> None:
        while self.next < len(self.buckets) and not self.buckets[self.next].waiting:
            bucket = self.buckets[self.next]
            self.next += 1
            bucket.future = self._reduce(bucket, self.next == len(self.buckets))
        if self.next == len(self.buckets) and not self.accumulating:
            self._finish()

    def _reduce(self, bucket: _Bucket, last: bool) -> Future[Any]:
        if self.hook is not None:
            return self.hook(self.hook_state, GradBucket(bucket, last))
        return allreduce_hook(self.group, GradBucket(bucket, last))

    def shadow(self, ranks_with_inputs: int) -> None:
        """Takes part in the others' averages without a gradient of this rank."""
        for bucket in self.buckets:
            bucket.buffer.zero_()
            bucket.future = self._reduce(bucket, bucket is self.buckets[-1])
        self._hand_out(self._scale(ranks_with_inputs))

    def _scale(self, ranks_with_inputs: float) -> float:
        """What averages over all ranks are multiplied by where some have no inputs."""
        return 1.0 if self.divides_by_all else self.group.size() / ranks_with_inputs

    def _finish(self) -> None:
        """All buckets are under way."""
        self.active = False
        scale = 1.0
        work, self.ranks_with_inputs = self.ranks_with_inputs, None
        if work is not None:
            work.wait()
            scale = self._scale(work.result()[0].item())
        self._hand_out(scale)

    def _hand_out(self, scale: float) -> None:
        """Waits for the averages, and makes them the gradients."""
        owner = self.owner()
        as_view = owner is not None and owner.gradient_as_bucket_view
        for bucket in self.buckets:
            assert bucket.future is not None
            result = bucket.future.wait()
            if isinstance(result, (list, tuple)):
                result = result[0]
            bucket.future = None
            with autograd.no_grad():
                if result.data_ptr() != bucket.buffer.data_ptr():
                    bucket.buffer.copy_(result.reshape(-1))
                if scale != 1.0:
                    bucket.buffer.mul_(scale)
                for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
                    if as_view:
                        parameter.grad = view
                    elif parameter.grad is None:
                        parameter.grad = view.clone()
                    elif parameter.grad.data_ptr() != view.data_ptr():
                        parameter.grad.copy_(view)


def _make_buckets(parameters: list[Parameter], capacity: int) -> list[_Bucket]:
    """Last parameters first, as their gradients come; one dtype and device a bucket."""
    groups: list[list[Parameter]] = []
    filling: dict[tuple[str, str], tuple[list[Parameter], int]] = {}
    limit = min(_MIB, capacity)
    for p in reversed(parameters):
        key = (str(p.dtype), str(p.device))
        members, size = filling.get(key, ([], 0))
        members.append(p)
        size += p.numel() * p.element_size()
        filling[key] = (members, size)
        if size >= limit:
            groups.append(members)
            filling[key] = ([], 0)
            limit = capacity
    groups += [members for members, _ in filling.values() if members]
    return [_make_bucket(i, members) for i, members in enumerate(groups)]


def _make_bucket(index: int, parameters: list[Parameter]) -> _Bucket:
    buffer = empty(
        sum(p.numel() for p in parameters), dtype=parameters[0].dtype, device=parameters[0].device
    )
    views, at = [], 0
    for p in parameters:
        views.append(buffer[at : at + p.numel()].view(p.shape))
        at += p.numel()
    return _Bucket(index, parameters, buffer, views)


def _weak_method(owner: _Reducer, name: str) -> Callable[[Parameter], None]:
    """A hook that does not keep the reducer, and with it the module, alive."""
    reference = weakref.ref(owner)

    def hook(parameter: Parameter) -> None:
        alive = reference()
        if alive is not None:
            getattr(alive, name)(parameter)

    return hook


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from _tensors_in(v)
    elif isinstance(value, (list, tuple, set)):
        for v in value:
            yield from _tensors_in(v)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors_in(getattr(value, name))


def _accumulator(parameter: Tensor) -> Any:
    """The node that adds to `parameter.grad`."""
    with autograd.enable_grad():
        return parameter.view_as(parameter).grad_fn.next_functions[0][0]


def _history(result: Any) -> set[Any]:
    """All nodes that the tensors in `result` depend on."""
    nodes = [
        t.grad_fn if t.grad_fn is not None else _accumulator(t)
        for t in _tensors_in(result)
        if t.requires_grad
    ]
    seen = set(nodes)
    while nodes:
        for following, _ in nodes.pop().next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
    return seen


# ---- communication hooks -----------------------------------------------------------------------------------------------
def allreduce_hook(group: ProcessGroup | None, bucket: GradBucket) -> Future[Any]:
    """The average over the ranks: what happens without a hook."""
    work = all_reduce(bucket.buffer(), ReduceOp.AVG, group, async_op=True)
    assert work is not None
    return work.get_future()


def _compressed(group: ProcessGroup | None, bucket: GradBucket, dtype: Any) -> Future[Tensor]:
    full = bucket.buffer()
    small = full.to(dtype).div_(resolve(group).size())
    work = all_reduce(small, ReduceOp.SUM, group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda f: full.copy_(f.value()[0]))


def fp16_compress_hook(group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Averages in float16: half the bytes."""
    return _compressed(group, bucket, float16)


def bf16_compress_hook(group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """Averages in bfloat16: half the bytes."""
    return _compressed(group, bucket, bfloat16)


def _compressing(hook: CommHook, dtype: Any) -> CommHook:
    def compressed(state: Any, bucket: GradBucket) -> Future[Any]:
        full = bucket.buffer()
        bucket.set_buffer(full.to(dtype))

        def decompress(f: Future[Any]) -> Tensor:
            value = f.value()
            return full.copy_(value[0] if isinstance(value, (list, tuple)) else value)

        return hook(state, bucket).then(decompress)

    return compressed


def fp16_compress_wrapper(hook: CommHook) -> CommHook:
    """The hook, on gradients in float16."""
    return _compressing(hook, float16)


def bf16_compress_wrapper(hook: CommHook) -> CommHook:
    """The hook, on gradients in bfloat16."""
    return _compressing(hook, bfloat16)
