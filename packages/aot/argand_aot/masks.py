"""Gradients of functions made of straight pieces, as masks and choices: forward then keeps a mask where nothing else needs what it was made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import argand_c10 as c10

if TYPE_CHECKING:
    from argand_aot.emitter import Emitter

__all__ = ["MASKED"]


def _held(x: Any, *numbers: float) -> bool:
    """Whether a comparison in x's dtype, to which it rounds numbers, is that of the operator, which compares halves in float32."""
    return x.dtype.itemsize > 2 or all(c10.tensor(n, dtype=x.dtype).item() == n for n in numbers)


def _threshold(emit: Emitter, grad: Any, x: Any, threshold: Any) -> Any:
    return (
        emit.named("where", emit.named("le", x, threshold), 0, grad)
        if _held(x, threshold)
        else None
    )


def _hardtanh(emit: Emitter, grad: Any, x: Any, low: Any, high: Any) -> Any:
    if not _held(x, low, high):
        return None
    out = emit.named("logical_or", emit.named("le", x, low), emit.named("ge", x, high))
    return emit.named("where", out, 0, grad)


def _leaky_relu(emit: Emitter, grad: Any, x: Any, slope: Any) -> Any:
    return emit.named("where", emit.named("gt", x, 0), grad, emit.named("mul", grad, slope))


def _shrink(emit: Emitter, grad: Any, x: Any, lambd: Any) -> Any:
    if not _held(x, lambd):
        return None
    return emit.named("where", emit.named("le", emit.named("abs", x), lambd), 0, grad)


# By the backward operator's name: its result, bit for bit, or None where only the operator tells it. Derivatives of these gradients are still the operator's.
MASKED: Final[Mapping[str, Callable[..., Any]]] = {
    "threshold_backward": _threshold,
    "hardtanh_backward": _hardtanh,
    "leaky_relu_backward": _leaky_relu,
    "_prelu_kernel_backward_self": _leaky_relu,
    "hardshrink_backward": _shrink,
    "softshrink_backward": _shrink,
}
