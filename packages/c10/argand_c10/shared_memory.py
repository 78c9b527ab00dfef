"""Tensors in memory that processes share: through a queue or a pipe go file descriptors, and views of one storage stay such.

The receiver fetches a descriptor from the process that sent it, which has to live until then and keeps the memory. Memory that cannot be
shared without leaving somebody behind (NumPy arrays) is sent as a copy, with a warning.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from multiprocessing import context, queues, reduction, resource_sharer
from typing import Any

from argand_c10 import _C
from argand_c10._C import Tensor, UntypedStorage, dtype
from argand_c10.parameter import Buffer, Parameter
from argand_c10.tensor_methods import rebuilt

__all__ = ["refuse_history", "register"]


def _open_storage(descriptor: Any, nbytes: int) -> UntypedStorage:
    try:
        received = descriptor.detach()
    except (ConnectionError, FileNotFoundError, EOFError) as error:
        raise RuntimeError(
            "multiprocessing: the process that sent a tensor has ended, expected it to live until the tensor is received; join it afterwards"
        ) from error
    return UntypedStorage._open_shared(received, nbytes)


class _Offer(resource_sharer.DupFd):
    """What a process that gets it opens shared memory by. A message that nobody takes keeps the memory, but no descriptor of its own."""

    def __init__(self, storage: UntypedStorage) -> None:
        def send(connection: Any, pid: int) -> None:
            descriptor: Any = storage._shared_descriptor()
            reduction.send_handle(connection, descriptor, pid)

        sharer: Any = resource_sharer._resource_sharer  # type: ignore[attr-defined]
        self._id = sharer.register(send, lambda: None)


def _offer(storage: UntypedStorage) -> Any:
    if context.get_spawning_popen() is None:
        return _Offer(storage)
    descriptor: Any = storage._shared_descriptor()
    return reduction.DupFd(descriptor)  # which the new process inherits


def _reduce_storage(storage: UntypedStorage) -> tuple[Any, ...]:
    """A storage's memory is shared from now on; its descriptor is what is sent."""
    if not storage._moves_alone():
        warnings.warn(
            f"multiprocessing: {storage.nbytes()} bytes are sent as a copy, as others than tensors look at them (NumPy arrays, other "
            "libraries, slices of the storage); where processes are to share them, call share_memory_() on a clone() and send that",
            stacklevel=2,
        )
        storage = _C._copy_storage(storage)
    return _open_storage, (_offer(storage.share_memory_()), storage.nbytes())


def _fail(error: Exception) -> None:
    raise error


def _is_nobody_told() -> bool:
    """Whether this is the thread of a queue that prints what pickling raises, while the receiver would wait for ever."""
    thread = threading.current_thread()
    kind: Any = queues.Queue
    handler = kind._on_queue_feeder_error
    return any(argument is handler for argument in getattr(thread, "_args", ()))


def _sent(reduce: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], tuple[Any, ...]]:
    """What `reduce` raises in a queue's thread is raised by the receiver's get()."""

    def reduce_or_tell(value: Any) -> tuple[Any, ...]:
        try:
            return reduce(value)
        except Exception as error:
            if not _is_nobody_told():
                raise
            return _fail, (error,)

    return reduce_or_tell


def _open_tensor(
    cls: type[Tensor],
    storage: UntypedStorage,
    element_type: dtype,
    geometry: tuple[int, tuple[int, ...], tuple[int, ...]],
    requires_grad: bool,
    state: dict[str, Any] | None,
) -> Tensor:
    tensor = _C._empty_strided((0,), None, element_type, "cpu")
    tensor.set_(storage, *geometry)
    return rebuilt(tensor, cls, requires_grad, state)


def refuse_history(tensor: Tensor) -> None:
    """Raise a RuntimeError if the tensor has a history."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "multiprocessing: got a tensor that requires grad and is not a leaf, expected one without a history, as "
            "gradients do not cross the boundaries of processes; send its detach()"
        )


def _reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    refuse_history(tensor)
    if not tensor.is_cpu:
        return tensor.__reduce_ex__(2)  # type: ignore[return-value]
    geometry = (tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
    return _open_tensor, (
        type(tensor),
        tensor.untyped_storage(),
        tensor.dtype,
        geometry,
        tensor.requires_grad,
        tensor.__dict__ or None,
    )


def register() -> None:
    """From now on `multiprocessing` sends the CPU's tensors and storages as shared memory."""
    pickler: Any = reduction.ForkingPickler
    for cls in (Tensor, Parameter, Buffer):
        pickler.register(cls, _sent(_reduce_tensor))
    pickler.register(UntypedStorage, _sent(_reduce_storage))
