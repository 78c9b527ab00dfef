"""`Variable`, the name that tensors with gradients had before version 0.4."""

from __future__ import annotations

from argand_c10 import Tensor

__all__ = ["Variable"]


class _VariableType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Tensor, requires_grad: bool = False) -> Tensor:
        """A tensor on the same memory, without history."""
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_VariableType):
    """A tensor: `Variable(x, requires_grad)` is `x.detach().requires_grad_(requires_grad)`."""
