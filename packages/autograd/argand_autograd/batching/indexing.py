"""Rules of operators that choose elements by indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import argand_aten as aten
from argand_autograd.batching.level import EntriesDiffer, Level
from argand_autograd.batching.rules import by_entries, named, register
from argand_autograd.batching.shapes import fronted, shifted
from argand_c10 import Tensor, uint8
from argand_c10 import bool as bool_

# Compilers run these functions as they are.
__argand_plain__ = True
__all__: list[str] = []

ops = aten.ops

register(fronted("dim"), "gather", "scatter_", "scatter_add_", "scatter_reduce")


@named("index_select")
def _index_select(level: Level, op: Any, self: Tensor, dim: int, index: Tensor) -> Any:
    if not self.ndim or (level.has(index) and not index.ndim):
        return by_entries(level, op, (self, dim, index), {})
    at = shifted(dim, self.ndim)
    if not level.has(index):
        return op(level.of(self), at, index)
    rows = ops.movedim(level.front(self), at, 1)
    return ops.movedim(ops.index(rows, [ops.unsqueeze(level.places(), 1), level.of(index)]), 1, at)


@named("index_add_")
def _index_add(
    level: Level, op: Any, self: Tensor, dim: int, index: Tensor, source: Tensor, **kwargs: Any
) -> Any:
    if not self.ndim or not source.ndim or level.has(index):
        return by_entries(level, op, (self, dim, index, source), kwargs)
    return op(level.of(self), shifted(dim, self.ndim), index, level.front(source), **kwargs)


def _numbers(level: Level, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The indices without masks."""
    found: list[Tensor | None] = []
    for index in indices:
        if index is None or index.dtype not in (bool_, uint8):
            found.append(index)
        elif level.has(index):
            raise EntriesDiffer("got masks that differ as indices")
        else:
            found += ops.unbind(ops.nonzero(index), 1)
    return found


class _Chosen:
    """Where the dimensions of the indices are.

    Attributes:
        dims: of the indices, together.
        first: the dimension of the tensor that the first of them is for.
        adjacent: whether they stand in the place of the dimensions that they are for; else in front.
        rest: the number of the tensor's dimensions without an index.
    """

    def __init__(self, self_ndim: int, indices: list[Tensor | None]) -> None:
        given = [i for i, index in enumerate(indices) if index is not None]
        self.dims = max(index.ndim for index in indices if index is not None)
        self.first = given[0]
        self.adjacent = given[-1] - given[0] + 1 == len(given)
        self.rest = self_ndim - len(given)

    def inwards(self, x: Tensor) -> Tensor:
        """From (entries, dimensions of the indices, the rest) to where one entry's result has them."""
        if not self.adjacent or not self.first:
            return x
        here = list(range(1, 1 + self.dims))
        return ops.movedim(x, here, [d + self.first for d in here])

    def outwards(self, x: Tensor) -> Tensor:
        """The inverse of `inwards`."""
        if not self.adjacent or not self.first:
            return x
        here = list(range(1, 1 + self.dims))
        return ops.movedim(x, [d + self.first for d in here], here)

    def whole_indices(self, level: Level, indices: list[Tensor | None]) -> list[Tensor | None]:
        places = ops.reshape(level.places(), [level.size] + [1] * self.dims)
        return [places, *(level.aligned(index, self.dims) for index in indices)]


@named("index")
def _index(level: Level, op: Any, self: Tensor, indices: Sequence[Tensor | None]) -> Any:
    numbers = _numbers(level, indices)
    chosen = _Chosen(self.ndim, numbers)
    if not any(level.has(index) for index in numbers):
        result = op(level.of(self), [None, *numbers])
        return result if chosen.adjacent else ops.movedim(result, chosen.dims, 0)
    return chosen.inwards(op(level.front(self), chosen.whole_indices(level, numbers)))


@named("index_put_")
def _index_put(
    level: Level,
    op: Any,
    self: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
) -> Any:
    numbers = _numbers(level, indices)
    chosen = _Chosen(self.ndim, numbers)
    ndim = chosen.dims + chosen.rest
    if values.ndim > ndim:
        return by_entries(level, op, (self, indices, values, accumulate), {})
    whole = level.front(values)
    for _ in range(ndim - values.ndim):
        whole = ops.unsqueeze(whole, 1)
    op(
        level.of(self),
        chosen.whole_indices(level, numbers),
        chosen.outwards(whole),
        accumulate,
    )


# ---- embeddings -------------------------------------------------------------------------------------------------------
def _offset(level: Level, indices: Tensor, count: int) -> Tensor:
    """Indices into the tables of all entries, one below the other; those outside of a table are left to its own operator."""
    if bool(
        ops.any(ops.logical_or(ops.lt(level.of(indices), 0), ops.ge(level.of(indices), count)))
    ):
        raise EntriesDiffer("got an index out of range")
    places = ops.reshape(level.places(), [level.size] + [1] * indices.ndim)
    return ops.add(level.front(indices), ops.mul(places, count))


@named("embedding")
def _embedding(
    level: Level,
    op: Any,
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    if not level.has(weight):
        return op(weight, level.of(indices), padding_idx, scale_grad_by_freq, sparse)
    if padding_idx >= 0 or scale_grad_by_freq or sparse:  # what wholes' gradients would count
        given = (weight, indices, padding_idx, scale_grad_by_freq, sparse)
        return by_entries(level, op, given, {})
    table = ops.reshape(level.of(weight), [level.size * weight.shape[0], weight.shape[1]])
    return op(table, _offset(level, indices, weight.shape[0]))


@named("embedding_backward")
def _embedding_backward(
    level: Level,
    op: Any,
    grad_output: Tensor,
    indices: Tensor,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Any:
    grad = level.front(grad_output)
    if padding_idx >= 0:
        left_out = ops.unsqueeze(ops.eq(level.front(indices), padding_idx), -1)
        grad = ops.masked_fill(grad, left_out, 0)
    places = _offset(level, indices, num_weights)
    made = op(grad, places, level.size * num_weights, -1, scale_grad_by_freq)
    return ops.reshape(made, [level.size, num_weights, grad.shape[-1]])
