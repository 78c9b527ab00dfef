"""Tensors in memory that processes share: through a queue or a pipe go file descriptors, and views of one storage stay such.

The receiver fetches a descriptor from the process that sent it, which has to live until then.
"""

from __future__ import annotations

from multiprocessing import reduction
from typing import Any

from argand_c10 import _C
from argand_c10._C import Tensor, UntypedStorage, dtype
from argand_c10.parameter import Buffer, Parameter

__all__ = ["register"]


def _open_storage(descriptor: Any, nbytes: int) -> UntypedStorage:
    try:
        received = descriptor.detach()
    except (ConnectionError, FileNotFoundError, EOFError) as error:
        raise RuntimeError(
            "multiprocessing: the process that sent a tensor has ended, expected it to live until the tensor is received; join it afterwards"
        ) from error
    return UntypedStorage._open_shared(received, nbytes)


def _reduce_storage(storage: UntypedStorage) -> tuple[Any, ...]:
    """A storage's memory is shared from now on; its descriptor is what is sent."""
    descriptor: Any = storage.share_memory_()._shared_descriptor()
    return _open_storage, (reduction.DupFd(descriptor), storage.nbytes())


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
    if cls is not Tensor:
        tensor = Tensor._make_subclass(cls, tensor)
    if requires_grad:
        tensor.requires_grad = True
    if state:
        tensor.__dict__.update(state)
    return tensor


def _reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "multiprocessing: got a tensor that requires grad and is not a leaf, expected one without a history, as "
            "gradients do not cross the boundaries of processes; send its detach()"
        )
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
        pickler.register(cls, _reduce_tensor)
    pickler.register(UntypedStorage, _reduce_storage)
