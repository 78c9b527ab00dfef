"""Collectives and point-to-point operations on tensors, as `torch.distributed` calls them.

Tensors may be strided, and may lie on a device whose group has only Gloo: they then travel through contiguous CPU memory.
Every function with `async_op` returns None when it is over, or a `Work` with async_op=True. A process that is not in the group
returns None at once.
"""

from __future__ import annotations

import contextlib
import datetime
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import argand_autograd as autograd
from argand_aten import empty_like
from argand_c10 import Tensor
from argand_distributed import _C
from argand_distributed.work import Work
from argand_distributed.world import ProcessGroup, get_group_rank, is_member, resolve

ReduceOp = _C.RedOpType
ReduceOp.RedOpType = ReduceOp  # the type of the members, which is one with what has them


class reduce_op:
    """The older name of ReduceOp's members."""

    SUM = ReduceOp.SUM
    PRODUCT = ReduceOp.PRODUCT
    MAX = ReduceOp.MAX
    MIN = ReduceOp.MIN


class _Staged:
    """Tensors as a backend takes them, and the way back into the user's."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.device = "cpu" if backend.backend == "gloo" else "cuda"
        self.pending: list[tuple[Tensor, Tensor]] = []

    def read(self, tensor: Tensor) -> Tensor:
        """For tensors that are only read."""
        if tensor.device.type != self.device:
            tensor = tensor.detach().to(self.device)
        return tensor if tensor.is_contiguous() else tensor.detach().contiguous()

    def write(self, tensor: Tensor, keep: bool = True) -> Tensor:
        """For tensors that receive a result; `keep`: their values are needed too."""
        if tensor.device.type == self.device and tensor.is_contiguous():
            return tensor
        with autograd.no_grad():
            staged = (
                self.read(tensor) if keep else empty_like(tensor, device=self.device).contiguous()
            )
        self.pending.append((tensor, staged))
        return staged

    def finish(self) -> None:
        with autograd.no_grad():
            for tensor, staged in self.pending:
                tensor.copy_(staged)

    def work(self, handle: Any, result: Sequence[Tensor]) -> Work:
        return Work([handle], list(result), self.finish if self.pending else None)


class _Coalesced(threading.local):
    """Of this thread: the works of the innermost `_coalescing_manager`."""

    works: list[Work] | None = None


_coalesced = _Coalesced()


def _runs_alone(async_op: bool) -> bool:
    """Whether the caller waits for this operation at once, so that it may run in its thread."""
    return not async_op and _coalesced.works is None


def _over(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    if _coalesced.works is not None:
        _coalesced.works.append(work)
    else:
        work.wait()
    return None


class _CoalescingManager:
    """What `with _coalescing_manager(...) as manager` gives."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def wait(self) -> None:
        """Waits for all operations that were started within."""
        works, self.works = self.works, []
        for work in works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(
    group: Any = None, device: Any = None, async_ops: bool = False
) -> Iterator[_CoalescingManager]:
    """Collectives of the group that are called within start together, and are over behind it.

    Args:
        group: the process group; None: the default one.
        device: accepted for programs that give it; a backend is found by the tensors.
        async_ops: leave without waiting; the manager's `wait` does that.
    """
    manager = _CoalescingManager()
    if not is_member(group):
        yield manager
        return
    backends = [b for b in resolve(group).backends.values() if b.backend == "nccl"]
    before, _coalesced.works = _coalesced.works, manager.works
    try:
        with _Started(backends):
            yield manager
    finally:
        _coalesced.works = before
    if not async_ops:
        manager.wait()


def _check_tensor(op: str, name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"{op}: got {type(value).__name__} for {name}, expected a Tensor")


def _check_list(op: str, name: str, values: Any, size: int, dtype: Any) -> None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(f"{op}: got {type(values).__name__} for {name}, expected a list of Tensors")
    if len(values) != size:
        raise ValueError(
            f"{op}: got {len(values)} tensors in {name}, expected one for each of the {size} ranks of the group"
        )
    for value in values:
        if value.dtype != dtype:
            raise TypeError(
                f"{op}: got {value.dtype} in {name}, expected {dtype} as the other tensor has"
            )


def _root(op: str, group: ProcessGroup, root: int | None, group_root: int | None) -> int:
    if (root is None) == (group_root is None):
        raise ValueError(
            f"{op}: expected the root as a global rank, or as a rank of the group; give one of them"
        )
    if group_root is not None:
        if not 0 <= group_root < group.size():
            raise ValueError(f"{op}: got rank {group_root}, expected 0 to {group.size() - 1}")
        return group_root
    assert root is not None
    return get_group_rank(group, root)


def all_reduce(
    tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combines `tensor` of all ranks element by element, in place on each.

    Args:
        tensor: of the same shape and dtype on all ranks.
        op: SUM, AVG, PRODUCT, MIN, MAX; BAND, BOR, BXOR of integers.
        group: the process group; None: the default one.
        async_op: return at once; the result is there after `wait`.

    Raises:
        DistBackendError: a rank failed, did not arrive in time, or called something else.
    """
    _check_tensor("all_reduce", "tensor", tensor)
    if not is_member(group):
        return None
    staged = _Staged(resolve(group).backend_for(tensor, "all_reduce"))
    handle = staged.backend.all_reduce([staged.write(tensor)], op, _runs_alone(async_op))
    return _over(staged.work(handle, [tensor]), async_op)


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` of several tensors as one operation."""
    if not is_member(group):
        return None
    staged = _Staged(resolve(group).backend_for(tensors[0], "all_reduce_coalesced"))
    handle = staged.backend.all_reduce(
        [staged.write(t) for t in tensors], op, _runs_alone(async_op)
    )
    return _over(staged.work(handle, tensors), async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copies `tensor` of the global rank `src` (or the group's rank `group_src`) into that of all ranks."""
    _check_tensor("broadcast", "tensor", tensor)
    if not is_member(group):
        return None
    pg = resolve(group)
    root = _root("broadcast", pg, src, group_src)
    staged = _Staged(pg.backend_for(tensor, "broadcast"))
    given = staged.read(tensor) if pg.rank() == root else staged.write(tensor, keep=False)
    return _over(
        staged.work(staged.backend.broadcast([given], root, _runs_alone(async_op)), [tensor]),
        async_op,
    )


def broadcast_tensors(tensors: Sequence[Tensor], group: ProcessGroup, root: int) -> Work:
    """`broadcast` of several tensors of one device as one operation; `root` is a rank of the group."""
    staged = _Staged(group.backend_for(tensors[0], "broadcast"))
    take = staged.read if group.rank() == root else staged.write
    return staged.work(staged.backend.broadcast([take(t) for t in tensors], root, False), tensors)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """As `all_reduce`, with the result on the global rank `dst` only; the others keep their tensor."""
    _check_tensor("reduce", "tensor", tensor)
    if not is_member(group):
        return None
    pg = resolve(group)
    root = _root("reduce", pg, dst, group_dst)
    staged = _Staged(pg.backend_for(tensor, "reduce"))
    given = staged.write(tensor) if pg.rank() == root else staged.read(tensor)
    return _over(
        staged.work(staged.backend.reduce(given, root, op, _runs_alone(async_op)), [tensor]),
        async_op,
    )


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Puts `tensor` of each rank into `tensor_list[rank]` of all ranks. Sizes may differ from rank to rank."""
    _check_tensor("all_gather", "tensor", tensor)
    if not is_member(group):
        return None
    pg = resolve(group)
    _check_list("all_gather", "tensor_list", tensor_list, pg.size(), tensor.dtype)
    own = tensor_list[pg.rank()]
    if own.numel() != tensor.numel():
        raise ValueError(
            f"all_gather: got a tensor of shape {tuple(tensor.shape)} and tensor_list[{pg.rank()}] of shape "
            f"{tuple(own.shape)}, expected as many elements in both"
        )
    staged = _Staged(pg.backend_for(tensor, "all_gather"))
    outputs = [staged.write(t, keep=False) for t in tensor_list]
    handle = staged.backend.all_gather(outputs, staged.read(tensor), _runs_alone(async_op))
    return _over(staged.work(handle, tensor_list), async_op)


def _parts(tensor: Tensor, size: int, op: str, sizes: Sequence[int] | None = None) -> list[Tensor]:
    """A contiguous tensor cut along its first dimension: equally, or by `sizes`."""
    flat = tensor.detach()
    if sizes is None:
        if flat.numel() % size:
            raise ValueError(
                f"{op}: got a tensor of {flat.numel()} elements, expected a multiple of the {size} ranks"
            )
        flat = flat.view(-1)
        sizes = [flat.numel() // size] * size
    elif len(sizes) != size or sum(sizes) != (flat.shape[0] if flat.ndim else 1):
        raise ValueError(
            f"{op}: got splits {list(sizes)} of a tensor of shape {tuple(flat.shape)}, expected {size} numbers "
            "that add up to its first size"
        )
    parts, at = [], 0
    for n in sizes:
        parts.append(flat.narrow(0, at, n))
        at += n
    return parts


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_gather` into one tensor: the ranks' tensors one after the other (concatenated or stacked)."""
    op = "all_gather_into_tensor"
    if not is_member(group):
        return None
    pg = resolve(group)
    if (
        output_tensor.numel() != input_tensor.numel() * pg.size()
        or output_tensor.dtype != input_tensor.dtype
    ):
        raise ValueError(
            f"{op}: got an output of {output_tensor.numel()} elements of {output_tensor.dtype} for an input of "
            f"{input_tensor.numel()} of {input_tensor.dtype}, expected {pg.size()} times as many of the same dtype"
        )
    staged = _Staged(pg.backend_for(input_tensor, op))
    whole = staged.write(output_tensor, keep=False)
    handle = staged.backend.all_gather(
        _parts(whole, pg.size(), op), staged.read(input_tensor), _runs_alone(async_op)
    )
    return _over(staged.work(handle, [output_tensor]), async_op)


_all_gather_base = all_gather_into_tensor


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Puts `tensor` of each rank into `gather_list[rank]` of the global rank `dst` (default 0); the others give no list."""
    _check_tensor("gather", "tensor", tensor)
    if not is_member(group):
        return None
    pg = resolve(group)
    root = 0 if dst is None and group_dst is None else _root("gather", pg, dst, group_dst)
    outputs = list(gather_list or [])
    if pg.rank() == root:
        _check_list("gather", "gather_list", outputs, pg.size(), tensor.dtype)
        _same_shapes("gather", outputs, tensor)
    elif outputs:
        raise ValueError(
            "gather: got a gather_list on a rank that is not the destination; give None there"
        )
    staged = _Staged(pg.backend_for(tensor, "gather"))
    written = [staged.write(t, keep=False) for t in outputs]
    handle = staged.backend.gather(written, staged.read(tensor), root, _runs_alone(async_op))
    return _over(staged.work(handle, outputs), async_op)


def _same_shapes(op: str, tensors: Sequence[Tensor], one: Tensor) -> None:
    for t in tensors:
        if t.shape != one.shape:
            raise ValueError(
                f"{op}: got tensors of shapes {tuple(t.shape)} and {tuple(one.shape)}, expected equal ones"
            )


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Puts `scatter_list[rank]` of the global rank `src` (default 0) into `tensor` of each rank."""
    _check_tensor("scatter", "tensor", tensor)
    if not is_member(group):
        return None
    pg = resolve(group)
    root = 0 if src is None and group_src is None else _root("scatter", pg, src, group_src)
    inputs = list(scatter_list or [])
    if pg.rank() == root:
        _check_list("scatter", "scatter_list", inputs, pg.size(), tensor.dtype)
        _same_shapes("scatter", inputs, tensor)
    elif inputs:
        raise ValueError(
            "scatter: got a scatter_list on a rank that is not the source; give None there"
        )
    staged = _Staged(pg.backend_for(tensor, "scatter"))
    read = [staged.read(t) for t in inputs]
    handle = staged.backend.scatter(
        staged.write(tensor, keep=False), read, root, _runs_alone(async_op)
    )
    return _over(staged.work(handle, [tensor]), async_op)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Combines `input_list[r]` of all ranks into `output` of rank r."""
    _check_tensor("reduce_scatter", "output", output)
    if not is_member(group):
        return None
    pg = resolve(group)
    _check_list("reduce_scatter", "input_list", input_list, pg.size(), output.dtype)
    if input_list[pg.rank()].numel() != output.numel():
        raise ValueError(
            f"reduce_scatter: got an output of shape {tuple(output.shape)} and input_list[{pg.rank()}] of shape "
            f"{tuple(input_list[pg.rank()].shape)}, expected as many elements in both"
        )
    staged = _Staged(pg.backend_for(output, "reduce_scatter"))
    inputs = [staged.read(t) for t in input_list]
    handle = staged.backend.reduce_scatter(
        staged.write(output, keep=False), inputs, op, _runs_alone(async_op)
    )
    return _over(staged.work(handle, [output]), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`reduce_scatter` of one tensor, cut into as many equal parts as there are ranks."""
    name = "reduce_scatter_tensor"
    if not is_member(group):
        return None
    pg = resolve(group)
    if input.numel() != output.numel() * pg.size() or input.dtype != output.dtype:
        raise ValueError(
            f"{name}: got an input of {input.numel()} elements of {input.dtype} for an output of {output.numel()} of "
            f"{output.dtype}, expected {pg.size()} times as many of the same dtype"
        )
    staged = _Staged(pg.backend_for(output, name))
    inputs = _parts(staged.read(input), pg.size(), name)
    handle = staged.backend.reduce_scatter(
        staged.write(output, keep=False), inputs, op, _runs_alone(async_op)
    )
    return _over(staged.work(handle, [output]), async_op)


_reduce_scatter_base = reduce_scatter_tensor


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Puts `input_tensor_list[r]` of each rank into `output_tensor_list[that rank]` of rank r."""
    if not is_member(group):
        return None
    pg = resolve(group)
    _check_list(
        "all_to_all", "input_tensor_list", input_tensor_list, pg.size(), input_tensor_list[0].dtype
    )
    _check_list(
        "all_to_all",
        "output_tensor_list",
        output_tensor_list,
        pg.size(),
        input_tensor_list[0].dtype,
    )
    staged = _Staged(pg.backend_for(input_tensor_list[0], "all_to_all"))
    outputs = [staged.write(t, keep=False) for t in output_tensor_list]
    inputs = [staged.read(t) for t in input_tensor_list]
    handle = staged.backend.all_to_all(outputs, inputs, False, _runs_alone(async_op))
    return _over(staged.work(handle, output_tensor_list), async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`all_to_all` of one tensor, cut along its first dimension equally or by the split sizes."""
    name = "all_to_all_single"
    if not is_member(group):
        return None
    pg = resolve(group)
    if output.dtype != input.dtype:
        raise TypeError(f"{name}: got {output.dtype} and {input.dtype}, expected one dtype")
    staged = _Staged(pg.backend_for(input, name))
    outputs = _parts(staged.write(output, keep=False), pg.size(), name, output_split_sizes or None)
    inputs = _parts(staged.read(input), pg.size(), name, input_split_sizes or None)
    equal = not output_split_sizes and not input_split_sizes
    handle = staged.backend.all_to_all(outputs, inputs, equal, _runs_alone(async_op))
    return _over(staged.work(handle, [output]), async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Waits until every rank of the group is here. `device_ids` is accepted for programs that give it."""
    if not is_member(group):
        return None
    return _over(Work([resolve(group).any_backend().barrier(_runs_alone(async_op))], []), async_op)


def monitored_barrier(
    group: Any = None, timeout: datetime.timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """A barrier through the store, whose error on rank 0 of the group names the ranks that did not come.

    Args:
        group: the process group; None: the default one.
        timeout: by default the store's.
        wait_all_ranks: name all missing ranks, not only the first.

    Raises:
        DistBackendError: ranks are missing.
    """
    if not is_member(group):
        return
    pg = resolve(group)
    limit = timeout or pg.store.timeout
    number = pg.store.add(f"monitored/{pg.rank()}", 1)
    keys = [f"monitored/{number}/{rank}" for rank in range(pg.size())]
    pg.store.set(keys[pg.rank()], b"1")
    released = f"monitored/{number}/released"
    if pg.rank():
        try:
            pg.store.wait([released], limit)
        except _C.DistStoreError:
            raise _C.DistBackendError(
                f"monitored_barrier: rank {pg.ranks[pg.rank()]} was not released within {limit.total_seconds()} s; "
                "rank 0 of the group says who is missing"
            ) from None
        return
    try:
        pg.store.wait(keys, limit)
    except _C.DistStoreError:
        missing = [pg.ranks[rank] for rank, key in enumerate(keys) if not pg.store.check([key])]
        if missing:
            named = missing if wait_all_ranks else missing[:1]
            raise _C.DistBackendError(
                f"monitored_barrier: ranks {named} did not come within {limit.total_seconds()} s"
            ) from None
    pg.store.set(released, b"1")


# ---- point to point ---------------------------------------------------------------------------------------------------
def _peer(op: str, pg: ProcessGroup, peer: int | None, group_peer: int | None) -> int:
    rank = _root(op, pg, peer, group_peer)
    if rank == pg.rank():
        raise ValueError(
            f"{op}: got this process's own rank {pg.ranks[rank]}, expected another one"
        )
    return rank


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Sends `tensor` to the global rank `dst`; it must not change before `wait`."""
    _check_tensor("isend", "tensor", tensor)
    if not is_member(group):
        return None
    pg = resolve(group)
    staged = _Staged(pg.backend_for(tensor, "isend"))
    return staged.work(
        staged.backend.send(staged.read(tensor), _peer("isend", pg, dst, group_dst), tag), []
    )


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Receives `tensor` from the global rank `src`, or from any (None); of the sender's shape and dtype."""
    _check_tensor("irecv", "tensor", tensor)
    if not is_member(group):
        return None
    pg = resolve(group)
    anyone = src is None and group_src is None
    staged = _Staged(pg.backend_for(tensor, "irecv"))
    peer = -1 if anyone else _peer("irecv", pg, src, group_src)
    handle = staged.backend.recv(staged.write(tensor, keep=False), peer, tag)
    return staged.work(handle, [tensor])


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """`isend`, and waits until the receiver takes it."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """`irecv`, and waits. Returns the sender's global rank; -1 where this process is not in the group."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    pg = resolve(group)
    if src is not None or group_src is not None:
        return pg.ranks[_root("recv", pg, src, group_src)]
    return pg.ranks[work.source_rank()]


@dataclass
class P2POp:
    """One of the operations of `batch_isend_irecv`: `op` is `isend` or `irecv`."""

    op: Callable[..., Work | None]
    tensor: Tensor
    peer: int | None = None
    group: Any = None
    tag: int = 0
    group_peer: int | None = None

    def __post_init__(self) -> None:
        if self.op not in (isend, irecv):
            raise ValueError(f"P2POp: got {self.op!r}, expected isend or irecv")


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Starts sends and receives together, in whatever order they fit; a `Work` for each."""
    if not p2p_op_list or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("batch_isend_irecv: expected a list of at least one P2POp")
    started: dict[int, Work] = {}
    found = [
        resolve(p.group).backend_for(p.tensor, "batch_isend_irecv")
        for p in p2p_op_list
        if is_member(p.group)
    ]
    with _Started(list({id(b): b for b in found if b.backend == "nccl"}.values())):
        # Receives first: their buffers wait for the messages.
        for receives in (True, False):
            for i, p in enumerate(p2p_op_list):
                if (p.op is irecv) is not receives:
                    continue
                work = p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer)
                if work is not None:
                    started[i] = work
    return [started[i] for i in sorted(started)]


class _Started:
    """NCCL starts the calls within together; Gloo needs nothing."""

    def __init__(self, backends: Sequence[Any]) -> None:
        self.backends = backends

    def __enter__(self) -> None:
        for backend in self.backends:
            backend.group_start()

    def __exit__(self, *error: object) -> None:
        for backend in self.backends:
            backend.group_end()
