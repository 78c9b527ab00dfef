"""Exchanging what two tensors are."""

from __future__ import annotations

from typing import Any

from argand_c10 import Tensor

__all__ = ["swap_tensors"]


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let each of two tensors become the other: their elements, classes, attributes and gradients; whoever holds one finds the other.

    Args:
        t1, t2: tensors that no operator made, on the same device.

    Raises:
        RuntimeError: an operator made one of them.
    """
    if t1.grad_fn is not None or t2.grad_fn is not None:
        raise RuntimeError(
            "swap_tensors: got the result of an operator, expected leaves; detach it"
        )
    kept = [(_parts(t1), t2), (_parts(t2), t1)]
    for t in (t1, t2):
        t.grad = None
        t.requires_grad = False
    for (cls, attributes, data, requires_grad, grad), target in kept:
        target.__class__ = cls
        target.__dict__.clear()
        target.__dict__.update(attributes)
        target.data = data
        target.requires_grad = requires_grad
        target.grad = grad


def _parts(t: Tensor) -> tuple[Any, dict[str, Any], Tensor, bool, Tensor | None]:
    return type(t), dict(t.__dict__), t.detach(), t.requires_grad, t.grad
