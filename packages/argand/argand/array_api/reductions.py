"""Reductions and running sums."""

from __future__ import annotations

from typing import Any

import argand
from argand import Tensor
from argand.array_api.data_types import KINDS

__all__ = [
    "all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var",
]  # fmt: skip

_range, _sorted = range, sorted


def _axes(x: Tensor, axis: Any) -> list[int]:
    """The reduced dimensions, from the first; None: all."""
    if axis is None:
        return list(_range(x.ndim))
    found = [axis] if isinstance(axis, int) else list(axis)
    for a in found:
        if not -x.ndim <= a < x.ndim:
            raise IndexError(f"got axis {a} for an array of {x.ndim} dimensions")
    return _sorted(a % x.ndim for a in found)


def _kept(x: Tensor, axes: list[int], result: Tensor, keepdims: bool) -> Tensor:
    return (
        result.reshape([1 if d in axes else n for d, n in enumerate(x.shape)])
        if keepdims
        else result
    )


def _total_dtype(x: Tensor, dtype: Any) -> Any:
    """Sums of integers are at least as wide as the default integer, and unsigned where those are."""
    if dtype is not None:
        return dtype
    if x.is_floating_point() or x.is_complex():
        return x.dtype
    return argand.uint64 if x.dtype in KINDS["unsigned integer"] else argand.int64


def sum(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Sums."""
    axes, total = _axes(x, axis), _total_dtype(x, dtype)
    return x.to(total, copy=True) if not axes else argand.sum(x, axes, keepdims, dtype=total)


def prod(x: Tensor, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Products."""
    axes, total, result = _axes(x, axis), _total_dtype(x, dtype), x
    for a in reversed(axes):
        result = argand.prod(result, a, dtype=total)
    return _kept(x, axes, result, keepdims) if axes else x.to(total, copy=True)


def mean(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Means."""
    axes = _axes(x, axis)
    return x.clone() if not axes else argand.mean(x, axes, keepdims)


def var(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Variances; `correction` is taken from the number of elements."""
    axes = _axes(x, axis)
    return (
        argand.zeros_like(x)
        if not axes and x.ndim
        else argand.var(x, axes or None, correction=correction, keepdim=keepdims)
    )


def std(
    x: Tensor, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Standard deviations."""
    return argand.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The greatest elements."""
    axes = _axes(x, axis)
    return x.clone() if not axes else argand.amax(x, axes, keepdims)


def min(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The least elements."""
    axes = _axes(x, axis)
    return x.clone() if not axes else argand.amin(x, axes, keepdims)


def all(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are nonzero."""
    axes, truth = _axes(x, axis), x.to(argand.bool)
    return truth.clone() if not axes else argand.all(truth, axes, keepdims)


def any(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether any element is nonzero."""
    axes, truth = _axes(x, axis), x.to(argand.bool)
    return truth.clone() if not axes else argand.any(truth, axes, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements are nonzero."""
    return sum(x.to(argand.bool), axis=axis, keepdims=keepdims)


def _running(
    name: str, x: Tensor, axis: int | None, dtype: Any, include_initial: bool, start: int
) -> Tensor:
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                f"cumulative_{name}: got no axis for an array of {x.ndim} dimensions, expected one"
            )
        axis = 0
    result = getattr(argand, f"cum{name}")(x, axis, dtype=_total_dtype(x, dtype))
    if include_initial:
        sizes = list(x.shape)
        sizes[axis] = 1
        result = argand.cat(
            [argand.full(sizes, start, dtype=result.dtype, device=x.device), result], axis
        )
    return result


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Running sums."""
    return _running("sum", x, axis, dtype, include_initial, 0)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Running products."""
    return _running("prod", x, axis, dtype, include_initial, 1)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours, `n` times."""
    return argand.diff(x, n, axis, prepend, append)
