"""Joins module backward hooks to autograd: one identity node over several tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argand_autograd import Function
from argand_c10 import Tensor
from argand_c10.module_hooks import set_gradient_barrier

__all__ = ["gradient_barrier", "install"]

OnBackward = Callable[[tuple[Any, ...]], tuple[Any, ...]]


class _Barrier(Function):
    """Aliases of its inputs; their gradients pass through `on_backward` together."""

    @staticmethod
    def forward(ctx: Any, on_backward: OnBackward, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.on_backward = on_backward
        ctx.set_materialize_grads(False)
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        return (None, *ctx.on_backward(grads))


def gradient_barrier(on_backward: OnBackward, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Aliases of `tensors` behind one autograd node that calls `on_backward` with all gradients."""
    result: tuple[Tensor, ...] = _Barrier.apply(on_backward, *tensors)
    return result


def install() -> None:
    """Let the hooks of `Module` use this node."""
    set_gradient_barrier(gradient_barrier)
