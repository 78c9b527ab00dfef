"""`Parameter` and `Buffer`: tensors that a `Module` registers when they are assigned to it."""

from __future__ import annotations

from typing import Any

from argand_c10._C import Tensor

__all__ = ["Buffer", "Parameter"]


class Parameter(Tensor):
    """A tensor that a `Module` lists among its parameters when assigned as an attribute.

    Args:
        data: the tensor to hold; its storage is shared, its autograd history is not. None: an empty one.
        requires_grad: whether gradients are accumulated into `.grad`.

    Raises:
        TypeError: if `data` is not a tensor.
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        data = Tensor() if data is None else data
        if not isinstance(data, Tensor):
            raise TypeError(
                f"{cls.__name__}: got data of type {type(data).__name__}, expected a Tensor; "
                "wrap the values with tensor(...) first"
            )
        result: Parameter = Tensor._make_subclass(cls, data, requires_grad)
        return result

    def __repr__(self, **kwargs: Any) -> str:
        return f"Parameter containing:\n{Tensor.__repr__(self)}"


class Buffer(Tensor):
    """A tensor that a `Module` registers as a buffer when assigned as an attribute.

    Args:
        data: the tensor to hold; its storage is shared. None: an empty one.
        persistent: whether the buffer belongs to the module's `state_dict`.

    Raises:
        TypeError: if `data` is not a tensor.
    """

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        data = Tensor() if data is None else data
        if not isinstance(data, Tensor):
            raise TypeError(
                f"{cls.__name__}: got data of type {type(data).__name__}, expected a Tensor; "
                "wrap the values with tensor(...) first"
            )
        result: Buffer = Tensor._make_subclass(cls, data, data.requires_grad)
        result.persistent = persistent
        return result
