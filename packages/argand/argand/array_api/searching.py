"""Searching, indexing, sorting, and sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import argand
from argand import Tensor
from argand.array_api.elementwise import promoted

__all__ = [
    "argmax", "argmin", "argsort", "isin", "nonzero", "searchsorted", "sort", "take", "take_along_axis", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "where",
]  # fmt: skip


class UniqueAll(NamedTuple):
    """Distinct elements, where each is first, which of them each element is, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct elements, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct elements, and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the first of the greatest elements is."""
    return _place(argand.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the first of the least elements is."""
    return _place(argand.argmin, x, axis, keepdims)


def _place(operator: Any, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    found = operator(x, axis, keepdims)
    return found.reshape([1] * x.ndim) if axis is None and keepdims else found


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The places of the elements in ascending order."""
    return argand.argsort(x, dim=axis, descending=descending, stable=stable)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in ascending order."""
    return argand.sort(x, dim=axis, descending=descending, stable=stable).values


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element of `x1` is one of `x2`."""
    return argand.isin(x1, x2, invert=invert)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements, one array a dimension."""
    if x.ndim == 0:
        raise ValueError("nonzero: got an array without dimensions, expected at least one")
    return tuple(argand.nonzero(x, as_tuple=True))


def searchsorted(
    x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Where elements would have to be put into a sorted vector."""
    x1, x2 = promoted(x1, x2)
    return argand.searchsorted(x1, x2, side=side, sorter=sorter)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Slices along an axis by a vector of indices, negative ones from the end."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take: got no axis for an array of {x.ndim} dimensions, expected one")
        axis = 0
    n = x.shape[axis]
    flat = indices.reshape(-1)
    found = argand.index_select(x, axis, argand.where(flat < 0, flat + n, flat))
    axis %= x.ndim
    return found.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """One element for each index, along an axis; the other dimensions broadcast."""
    n = x.shape[axis]
    return argand.take_along_dim(
        x, argand.where(indices < 0, indices + n, indices).to(argand.int64), axis
    )


def _distinct(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Each NaN is different from all others."""
    flat = x.reshape(-1)
    order = argand.argsort(flat, stable=True) if not x.is_complex() else _complex_order(flat)
    ordered = flat[order]
    new = argand.ones(flat.numel(), dtype=argand.bool, device=x.device)
    if flat.numel() > 1:
        new[1:] = ordered[1:] != ordered[:-1]
    starts = argand.nonzero(new).reshape(-1)
    inverse = argand.empty(flat.numel(), dtype=argand.int64, device=x.device)
    inverse[order] = argand.cumsum(new.to(argand.int64), 0) - 1
    ends = argand.cat(
        [
            starts[1:],
            argand.full((min(1, flat.numel()),), flat.numel(), dtype=argand.int64, device=x.device),
        ]
    )
    return ordered[starts], order[starts], inverse.reshape(x.shape), ends - starts


def _complex_order(flat: Tensor) -> Tensor:
    order = argand.argsort(flat.imag, stable=True)
    return order[argand.argsort(flat.real[order], stable=True)]


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements and all that is known of them."""
    return UniqueAll(*_distinct(x))


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements and their numbers."""
    values, _, _, counts = _distinct(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements and where each element is among them."""
    values, _, inverse, _ = _distinct(x)
    return UniqueInverse(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements."""
    return _distinct(x)[0]


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """Elements of `x1` where the condition holds, of `x2` elsewhere."""
    return argand.where(condition, *promoted(x1, x2))
