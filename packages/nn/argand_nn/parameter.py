"""`Parameter` and `Buffer`, and those whose shape is not known before the first call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import argand_aten as aten
from argand_c10 import Buffer, Parameter, Tensor

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class UninitializedTensorMixin:
    """A tensor without shape or values: it only moves between devices and dtypes until `materialize`."""

    cls_to_become: type[Tensor]

    def materialize(self, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or buffer of this shape, with values not set.

        Args:
            shape: its sizes.
            device: where it lives; where this object does by default.
            dtype: of its elements; that of this object by default.
        """
        tensor: Any = self
        tensor.data = aten.empty(
            list(shape), device=device or tensor.device, dtype=dtype or tensor.dtype
        )
        tensor.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            f"{type(self).__name__}: got a request for its shape, expected none before the first "
            "call; call the module, or load its state into a module of the same kind"
        )

    def detach(self) -> Any:
        """The object itself, so that it enters a module's state."""
        return self

    @classmethod
    def __argand_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", str(func))
        if name == "to" and isinstance(args[0], cls):
            moved = func(args[0].data, *args[1:], **(kwargs or {}))  # type: ignore[attr-defined]
            return cls(args[0].requires_grad, moved.device, moved.dtype)  # type: ignore[call-arg,attr-defined]
        raise ValueError(
            f"{name}: got an uninitialized parameter, expected one with "
            "values; call the lazy module once before"
        )

    def __repr__(self, **kwargs: Any) -> str:
        return f"<{type(self).__name__}>"

    def share_memory_(self) -> NoReturn:
        raise RuntimeError(
            "share_memory_: got an uninitialized parameter or buffer, expected one with values; "
            "call the lazy module once before"
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        result = type(self)(*self._arguments())
        memo[id(self)] = result
        return result

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), self._arguments()

    def _arguments(self) -> tuple[Any, ...]:
        tensor: Any = self
        own = (tensor.requires_grad, tensor.device, tensor.dtype)
        return (*own, tensor.persistent) if isinstance(self, Buffer) else own


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter of a lazy module before the first call.

    Args:
        requires_grad: whether it will need gradients.
        device: where it will live.
        dtype: of its elements; the default dtype if None.
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        data = aten.empty(0, device=device, dtype=dtype)
        result: UninitializedParameter = Tensor._make_subclass(cls, data, requires_grad)
        return result


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer of a lazy module before the first call; arguments as `UninitializedParameter`.

    Args:
        persistent: whether it belongs to the module's `state_dict`.
    """

    cls_to_become = Buffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        data = aten.empty(0, device=device, dtype=dtype)
        result: UninitializedBuffer = Tensor._make_subclass(cls, data, requires_grad)
        result.persistent = persistent
        return result


def is_lazy(param: Any) -> bool:
    """Whether `param` is a parameter or buffer without a shape yet."""
    return isinstance(param, UninitializedTensorMixin)
