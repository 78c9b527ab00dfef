"""Methods of `Tensor` that are not worth C++: printing, copying, pickling."""

from __future__ import annotations

import copy
from typing import Any

from argand_c10 import _C
from argand_c10._C import Tensor
from argand_c10.parameter import Parameter
from argand_c10.printing import tensor_text

__all__ = ["install", "is_complex", "is_floating_point", "is_storage", "is_tensor", "numel"]


def is_tensor(obj: object) -> bool:
    """Is the object a `Tensor`."""
    return isinstance(obj, Tensor)


def is_storage(obj: object) -> bool:
    """Is the object an `UntypedStorage`, or a storage with a dtype on one."""
    return isinstance(getattr(obj, "_untyped_storage", obj), _C.UntypedStorage)


def _checked(caller: str, input: object) -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"{caller}: got {type(input).__name__}, expected a Tensor")
    return input


def numel(input: Tensor) -> int:
    """The number of elements."""
    return _checked("numel", input).numel()


def is_floating_point(input: Tensor) -> bool:
    """Whether the tensor's dtype is a floating one."""
    return _checked("is_floating_point", input).is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the tensor's dtype is a complex one."""
    return _checked("is_complex", input).is_complex()


def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    return tensor_text(self, contents=tensor_contents)


def _format(self: Tensor, spec: str) -> str:
    if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


def _rebuild_tensor(
    cls: type[Tensor],
    data: bytes | None,
    dtype: _C.dtype,
    shape: tuple[int, ...],
    requires_grad: bool,
    state: dict[str, Any] | None,
    strides: tuple[int, ...] | None = None,
    device: str | None = None,
) -> Tensor:
    """A tensor from what `Tensor.__reduce_ex__` recorded; `data` is None on the meta device."""
    if data is None:
        plain = _C._empty_strided(shape, strides, dtype, "meta")
    else:
        plain = _C._tensor_from_bytes(data, dtype, shape)
        if device is not None:
            plain = _C.tensor(plain, device=device)
        if strides is not None:
            plain.set_(plain.untyped_storage(), 0, shape, strides)
    return rebuilt(plain, cls, requires_grad, state)


def rebuilt(
    plain: Tensor, cls: type[Tensor], requires_grad: bool, state: dict[str, Any] | None = None
) -> Tensor:
    """A plain tensor without history as one of a class, with `requires_grad` and attributes."""
    if cls is not Tensor:
        plain = Tensor._make_subclass(cls, plain)
    if requires_grad:
        plain.requires_grad = True
    if state:
        plain.__dict__.update(state)
    return plain


def _array_wrap(
    self: Tensor, array: Any, context: Any = None, return_scalar: bool = False
) -> Tensor:
    """Results of NumPy's functions on tensors are tensors."""
    return _C.from_numpy(array) if array.ndim else _C.tensor(array)


def _is_permuted(self: Tensor) -> bool:
    """Are the elements dense in memory, in another order than that of the dimensions."""
    if self.is_contiguous():
        return False
    span = 1
    for stride, size in sorted(
        (st, s) for st, s in zip(self.stride(), self.shape, strict=True) if s != 1
    ):
        if stride != span:
            return False
        span *= size
    return True


def _reduce_ex(self: Tensor, protocol: int) -> tuple[Any, ...]:
    """Values, dtype, shape and the order of dimensions in memory; gradients and their histories stay behind."""
    strides = tuple(self.stride()) if _is_permuted(self) else None
    data = None
    if not self.is_meta:
        stored = self
        if strides is not None:
            stored = _C._empty_strided((0,), None, self.dtype, self.device)
            stored.set_(self.untyped_storage(), self.storage_offset(), (self.numel(),), (1,))
        data = _C._tensor_to_bytes(stored)
    device = None if self.is_cpu or self.is_meta else str(self.device)
    state = self.__dict__ or None
    shape = tuple(self.shape)
    return _rebuild_tensor, (
        type(self),
        data,
        self.dtype,
        shape,
        self.requires_grad,
        state,
        strides,
        device,
    )


def _copied_storage(self: Tensor, memo: dict[int, Any]) -> _C.UntypedStorage:
    """One copy of each storage in a deep copy, so that views go on sharing."""
    copies: dict[_C.UntypedStorage, _C.UntypedStorage] = memo.setdefault(id(_C.UntypedStorage), {})
    storage = self.untyped_storage()
    if storage not in copies:
        copies[storage] = _C._copy_storage(storage)
    return copies[storage]


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of values, attributes and, as in PyTorch of all but parameters, the gradient."""
    if id(self) in memo:
        known: Tensor = memo[id(self)]
        return known
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
            "at the moment: got a tensor with a gradient history; detach() it first"
        )
    plain = _C._empty_strided((0,), None, self.dtype, self.device)
    plain.set_(_copied_storage(self, memo), self.storage_offset(), self.shape, self.stride())
    result = plain if type(self) is Tensor else Tensor._make_subclass(type(self), plain)
    if self.requires_grad:
        result.requires_grad = True
    memo[id(self)] = result
    if self.__dict__:
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    if self.grad is not None and not isinstance(self, Parameter):
        result.grad = copy.deepcopy(self.grad, memo)
    return result


def _copy(self: Tensor) -> Tensor:
    """A second tensor on the same memory, without history."""
    result = Tensor._make_subclass(type(self), self, self.requires_grad)
    if self.__dict__:
        result.__dict__.update(self.__dict__)
    return result


def _pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """This tensor in page-locked memory, from where copies to a CUDA device can run in the background."""
    return self if self.is_pinned() else _C._cuda_pin_memory(self)


def _is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is page-locked."""
    return _C._cuda_is_pinned(self)


def _record_stream(self: Tensor, s: Any) -> None:
    """Keep this tensor's memory from reuse until the work that a stream has when it is freed is done.

    Needed where a tensor is used on another stream than that on which it was made.
    """
    _C._cuda_record_stream(self, s.device_index, s.cuda_stream)


def _share_memory(self: Tensor) -> Tensor:
    """Move the memory to where processes share it: those that get this tensor, or are forked from now on, see each other's changes.

    Memory of 1 MiB and more that is not an array's or a file's keeps its address; else all tensors on it turn to the new one. What another
    thread writes meanwhile may be lost.

    Raises:
        DeviceError: the memory is not the CPU's.
        OutOfMemoryError: there is no room.
        RuntimeError: no file descriptor is left, or others than tensors look at memory that has to move.
    """
    from argand_c10.shared_memory import register  # not before: it loads `multiprocessing`

    register()
    self.untyped_storage().share_memory_()
    return self


def _is_shared(self: Tensor) -> bool:
    """Whether processes can share the memory."""
    return self.untyped_storage().is_shared()


def _dir(self: Tensor) -> list[str]:
    return sorted(set(dir(type(self))) | set(self.__dict__))


def install() -> None:
    """Put the methods onto the type; done once, when the package is imported."""
    methods: dict[str, Any] = {
        "__repr__": _repr,
        "__format__": _format,
        "__reduce_ex__": _reduce_ex,
        "__copy__": _copy,
        "__deepcopy__": _deepcopy,
        "__dir__": _dir,
        "is_pinned": _is_pinned,
        "pin_memory": _pin_memory,
        "record_stream": _record_stream,
        "share_memory_": _share_memory,
        "is_shared": _is_shared,
        "__array_priority__": 1000,
        "__array_wrap__": _array_wrap,
        "_cdata": property(id),  # programs compare it: whether two names are one tensor
    }
    for name, method in methods.items():
        setattr(Tensor, name, method)
