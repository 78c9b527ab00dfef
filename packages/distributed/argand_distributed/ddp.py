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
from argand_c10 import Module, Parameter, Tensor, bfloat16, float16
from argand_distributed.collectives import ReduceOp, all_reduce, broadcast_tensors
from argand_distributed.objects import all_gather_object
from argand_distributed.work import Future
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

    def index(self) -> int:
        return self._bucket.index

    def buffer(self) -> Tensor:
        """All gradients of the bucket, one after the other, in one vector."""
        return self._bucket.buffer

    def set_buffer(self, buffer: Tensor) -> None:
        with autograd.no_grad():
            self._bucket.buffer.copy_(buffer)

    def gradients(self) -> list[Tensor]:
        """The gradients; views of the buffer."""
        return list(self._bucket.views)

    def parameters(self) -> list[Parameter]:
        return list(self._bucket.parameters)

    def is_last(self) -> bool:
        return self._last


class DistributedDataParallel(Module):
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
        static_graph: accepted; which parameters are used may always vary with find_unused_parameters.

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
        self.find_unused_parameters = find_unused_parameters
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

    def _broadcast(self, tensors: Sequence[Tensor]) -> None:
        by_device: dict[str, list[Tensor]] = {}
        for t in tensors:
            by_device.setdefault(str(t.device), []).append(t.detach())
        for group in by_device.values():
            broadcast_tensors(group, self.process_group, 0).wait()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not autograd.is_grad_enabled() or not self.require_backward_grad_sync:
            return self.module(*inputs, **kwargs)
        self._reducer.prepare()
        if self.broadcast_buffers and self.training and self._buffers_to_send:
            self._broadcast(self._buffers_to_send)
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

    def register_comm_hook(self, state: Any, hook: CommHook) -> None:
        """Replaces the averaging: hook(state, bucket) gives a Future of the vector that the bucket becomes."""
        if self._reducer.hook is not None:
            raise RuntimeError("register_comm_hook: there is one already; a module has at most one")
        self._reducer.hook = hook
        self._reducer.hook_state = state


class _Reducer:
    """The buckets, and what the hooks of parameters do with them."""

    def __init__(
        self, parameters: list[Parameter], owner: DistributedDataParallel, capacity: int
    ) -> None:
        self.group = owner.process_group
        self.owner = weakref.ref(owner)
        self.hook: CommHook | None = None
        self.hook_state: Any = None
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

    def _finish(self) -> None:
        """All buckets are under way: waits for them, and hands out the averages."""
        self.active = False
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
