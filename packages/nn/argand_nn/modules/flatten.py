"""Changes of shape."""

from __future__ import annotations

from collections.abc import Sequence

from argand_c10 import Module, Tensor

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Join the dimensions from `start_dim` to `end_dim` into one."""

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split dimension `dim` into `unflattened_size` (one size may be -1)."""

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"Unflatten: got dim of type {type(dim).__name__}, expected int")
        if not isinstance(unflattened_size, tuple | list):
            raise TypeError(
                f"Unflatten: got unflattened_size of type {type(unflattened_size).__name__}, expected a tuple of ints"
            )
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"Unflatten: got a {type(size).__name__} at place {i} of unflattened_size, expected an int"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        dim = self.dim % input.dim()
        shape = [*input.shape[:dim], *self.unflattened_size, *input.shape[dim + 1 :]]
        return input.reshape(shape)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
