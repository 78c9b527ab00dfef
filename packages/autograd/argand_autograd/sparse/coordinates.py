"""Coordinates as single numbers, and what is made by them: dense tensors, order, sums of doubles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import argand_aten as aten
from argand_autograd import _C
from argand_autograd.sparse.tensor import SparseTensor, implements, make
from argand_c10 import Tensor, int64, uint8
from argand_c10 import bool as bool_dtype

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["at", "keys_of", "keys_to_indices", "merged", "summed", "to_sparse"]


def keys_of(indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """The place of each coordinate in row-major order, int64 (elements).

    Raises:
        RuntimeError: a coordinate lies outside of its dimension.
    """
    check_bounds(indices, sizes)
    if len(sizes) == 1:
        return indices[0]
    keys = aten.zeros([indices.shape[1]], dtype=int64, device=indices.device)
    for row, size in zip(indices.unbind(0), sizes, strict=True):
        keys = keys * size + row
    return keys


def check_bounds(indices: Tensor, sizes: Sequence[int]) -> None:
    """Refuse coordinates outside of their dimension."""
    if indices.numel() == 0:
        return
    low, high = indices.amin(1).tolist(), indices.amax(1).tolist()
    for dim, (least, most, size) in enumerate(zip(low, high, sizes, strict=True)):
        if least < 0:
            raise RuntimeError(f"found negative index {least} for dim {dim}")
        if most >= size:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size} but found index {most}"
            )


def keys_to_indices(keys: Tensor, sizes: Sequence[int]) -> Tensor:
    """Coordinates (dimensions, elements) of places in row-major order."""
    rows: list[Tensor] = []
    for size in reversed(sizes):
        rows.append(aten.remainder(keys, size))
        keys = aten.div(keys, size, rounding_mode="floor")
    if not rows:
        return aten.zeros([0, keys.shape[0]], dtype=int64, device=keys.device)
    return aten.stack(rows[::-1])


def summed(values: Tensor, places: Tensor, count: int) -> Tensor:
    """The sums of the values (elements, *dense dimensions) that go to each of `count` places."""
    if values.dtype == bool_dtype:
        return summed(values.to(uint8), places, count) != 0
    zeros = aten.zeros([count, *values.shape[1:]], dtype=values.dtype, device=values.device)
    return aten.index_add(zeros, 0, places, values)


def sparse_sizes(x: SparseTensor) -> list[int]:
    return list(x.shape[: x.sparse_dim()])


@implements("coalesce", "_coalesce")
def coalesce(self: SparseTensor) -> SparseTensor:
    if self.is_coalesced():
        return self
    sizes = sparse_sizes(self)
    keys, places = aten.unique(keys_of(self._indices(), sizes), return_inverse=True)
    values = summed(self._values(), places, keys.shape[0])
    return make(keys_to_indices(keys, sizes), values, self.shape, coalesced=True)


@implements("_without_doubles")
def without_doubles(self: SparseTensor, values: Tensor) -> SparseTensor:
    sizes = sparse_sizes(self)
    keys, places = aten.unique(keys_of(self._indices(), sizes), return_inverse=True)
    last = aten.zeros_like(keys).index_copy_(
        0, places, aten.arange(places.shape[0], device=places.device)
    )
    return make(
        keys_to_indices(keys, sizes), values.index_select(0, last), self.shape, coalesced=True
    )


@implements("to_dense", "_to_dense")
def to_dense(self: SparseTensor) -> Tensor:
    sizes = sparse_sizes(self)
    values = self._values()
    places = keys_of(self._indices(), sizes)
    return summed(values, places, math.prod(sizes)).reshape(self.shape)


def at(dense: Tensor, indices: Tensor) -> Tensor:
    """The elements of a dense tensor at coordinates of its first dimensions, differentiable."""
    if indices.shape[0] == 0:
        return dense.unsqueeze(0).expand(indices.shape[1], *dense.shape)
    if indices.shape[0] == 1:
        return aten.index_select(dense, 0, indices[0])
    return dense[tuple(indices.unbind(0))]


def to_sparse(dense: Tensor, sparse_dim: int | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not 0; of the last dimensions all, where one is not."""
    count = dense.dim() if sparse_dim is None else sparse_dim
    if not 0 <= count <= dense.dim() or (count == 0 and dense.dim() > 0):
        raise RuntimeError(
            f"sparse_dim argument must be in [{min(dense.dim(), 1)},{dense.dim()}] range, but {count} is given"
        )
    kept = dense.detach() != 0
    if count < dense.dim():
        kept = kept.flatten(count).any(-1)
    if dense.dim() == 0:
        indices = aten.zeros([0, int(kept)], dtype=int64, device=dense.device)
    else:
        indices = aten.nonzero(kept).t().contiguous()
    return make(indices, at(dense, indices), dense.shape, coalesced=True)


def merged(a: SparseTensor, b: SparseTensor) -> tuple[Tensor, Tensor, Tensor]:
    """Coordinates of a sum, and the place among them of each element of `a` and of `b`; as if both were in order, also if they are not."""
    sizes = sparse_sizes(a)
    here, there = (keys_of(x._indices(), sizes).contiguous() for x in (a, b))
    to_first, to_second, count = _C._merge_places(here, there)
    keys = aten.empty([count], dtype=int64)
    keys.index_copy_(0, to_first, here).index_copy_(0, to_second, there)
    return keys_to_indices(keys, sizes), to_first, to_second
