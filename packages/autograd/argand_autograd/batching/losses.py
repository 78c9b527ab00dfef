"""Rules of losses that choose elements by class."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_autograd.batching.level import Level
from argand_autograd.batching.rules import by_entries, named
from argand_c10 import Tensor

# Compilers run these functions as they are.
__argand_plain__ = True
__all__: list[str] = []

ops = aten.ops
_MEAN, _SUM = 1, 2


def _rows(level: Level, self: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The classes' numbers and the targets of all entries, as rows of one call."""
    x, t = level.front(self), level.front(target)
    if self.ndim == 1:
        return x, t
    return ops.reshape(x, [level.size * self.shape[0], *self.shape[1:]]), ops.reshape(
        t, [level.size * target.shape[0], *target.shape[1:]]
    )


@named("nll_loss_forward")
def _forward(
    level: Level,
    op: Any,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
) -> Any:
    if level.has(weight):
        return by_entries(level, op, (self, target, weight, reduction, ignore_index), {})
    x, t = _rows(level, self, target)
    losses = op(x, t, weight, 0, ignore_index)[0]
    losses = ops.reshape(losses, [level.size, *target.shape])
    kept = ops.ne(level.front(target), ignore_index)
    if weight is None:
        weights = kept.to(self.dtype)
    else:
        safe = ops.where(kept, level.front(target), 0)
        weights = ops.where(kept, ops.index(weight, [safe]), 0)
    dims = list(range(1, target.ndim + 1))
    total = ops.sum(weights, dims) if dims else weights
    if reduction not in (_MEAN, _SUM):
        return losses, total
    summed = ops.sum(losses, dims) if dims else losses
    return (ops.div(summed, total) if reduction == _MEAN else summed), total


@named("nll_loss_backward")
def _backward(
    level: Level,
    op: Any,
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Any:
    if level.has(weight):
        given = (grad_output, self, target, weight, reduction, ignore_index, total_weight)
        return by_entries(level, op, given, {})
    x, t = _rows(level, self, target)
    grad = level.front(grad_output)
    if reduction in (_MEAN, _SUM):
        if reduction == _MEAN:
            grad = ops.div(grad, level.front(total_weight))
        grad = ops.expand(
            ops.reshape(grad, [level.size] + [1] * target.ndim), [level.size, *target.shape]
        )
    grad = ops.reshape(grad, t.shape)
    made = op(grad, x, t, weight, 0, ignore_index, ops.new_zeros(x, []))
    return ops.reshape(made, [level.size, *self.shape])
