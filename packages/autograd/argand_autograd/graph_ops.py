"""Functions that may stand in compiler graphs beside operators; called, they do what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import argand_aten as aten
from argand_autograd import _C
from argand_autograd.function import Function
from argand_c10 import Tensor

__all__ = [
    "apply_function",
    "keep_grad_mode",
    "require_gradients",
    "set_grad_mode",
    "take_gradients",
]


def set_grad_mode(enabled: bool) -> None:
    """Record operations from here on, or do not."""
    _C._set_grad_enabled(enabled)


def keep_grad_mode(run: Callable[..., Any], left: bool | None = None) -> Callable[..., Any]:
    """`run`, which may call `set_grad_mode`; where it raises, the mode is `left`, by default as it was before."""

    def kept(*inputs: Any) -> Any:
        mode = _C.is_grad_enabled() if left is None else left
        try:
            return run(*inputs)
        except BaseException:
            _C._set_grad_enabled(mode)
            raise

    return kept


def require_gradients(leaf: Tensor) -> None:
    """From here on a tensor without a history requires grad."""
    leaf.requires_grad_()


def take_gradients(
    outputs: Sequence[Tensor],
    gradients: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    create_graph: bool,
) -> tuple[Tensor, ...]:
    """The gradients of outputs by inputs, laid out as these are; zeros for an input that no output depends on."""
    made = _C._run_backward(
        tuple(outputs), tuple(gradients), True, create_graph, tuple(inputs), False
    )
    return tuple(
        aten.zeros_like(x) if g is None else _laid_out(g, x)
        for g, x in zip(made or (), inputs, strict=True)
    )


def _laid_out(gradient: Tensor, like: Tensor) -> Tensor:
    strides = aten.empty_like(like).stride()
    if gradient.stride() == strides:
        return gradient
    order = sorted(range(like.ndim), key=lambda i: (-strides[i], i))
    dense = gradient.permute(order).contiguous()
    return dense.permute([order.index(i) for i in range(like.ndim)])


def apply_function(
    forward: Callable[..., tuple[Any, ...]],
    backward: Callable[..., tuple[Any, ...]],
    n_results: int,
    differentiable: tuple[bool, ...],
    materialize: bool,
    *args: Any,
) -> tuple[Any, ...]:
    """A custom `Function` as two graphs.

    Args:
        forward: `forward(*args)` -> the results, then what backward keeps. Runs without gradients.
        backward: `backward(*kept, *grads)` -> a gradient or None per argument.
        n_results: number of results; the gradients are as many.
        differentiable: per result, whether it carries a gradient.
        materialize: give backward zeros, not None, where no gradient flowed in.
        args: the arguments of forward: tensors, numbers and other constants.

    Returns:
        The results.
    """
    call = (forward, backward, n_results, differentiable, materialize)
    results = _GraphFunction.apply(call, *args)
    return results if isinstance(results, tuple) else (results,)


class _GraphFunction(Function):
    @staticmethod
    def forward(ctx: Any, call: tuple[Any, ...], *args: Any) -> tuple[Any, ...]:
        forward, ctx.derive, n, differentiable, materialize = call
        found = tuple(forward(*args))
        results, kept = found[:n], found[n:]
        ctx.set_materialize_grads(materialize)
        ctx.save_for_backward(*[x if isinstance(x, Tensor) else None for x in kept])
        ctx.constants = [None if isinstance(x, Tensor) else x for x in kept]
        fixed = [x for x, flows in zip(results, differentiable, strict=True) if not flows]
        ctx.mark_non_differentiable(*[x for x in fixed if isinstance(x, Tensor)])
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        pairs = zip(ctx.saved_tensors, ctx.constants, strict=True)
        kept = [constant if tensor is None else tensor for tensor, constant in pairs]
        return (None, *ctx.derive(*kept, *grads))
