"""Distinct elements, and derivatives on grids: results whose number depends on the arguments."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from argand_aten._operators import ops
from argand_c10 import Tensor, get_default_dtype, int8, int16, int32, int64, uint8
from argand_c10 import bool as bool_
from argand_c10.errors import require_tensors

__all__ = ["gradient", "histogramdd", "unique", "unique_consecutive"]

_range = range  # where an argument has that name
_WHOLE = (int64, int32, int16, int8, uint8)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order, or the distinct slices along `dim`, in lexicographic order.

    Args:
      sorted: kept for callers of PyTorch's; the result is always sorted.
      return_inverse: also where each element went.
      return_counts: also how often each occurs.

    Returns:
      values, or (values[, inverse][, counts]).
    """
    _check_flags(
        "unique", sorted=sorted, return_inverse=return_inverse, return_counts=return_counts
    )
    x = _slices("unique", input, dim)
    if dim is None:
        bounds = _bounds(x)
        span = bounds[1] - bounds[0] if bounds else x.numel() * 4
        if bounds and span < x.numel() * 4 and not return_inverse and not return_counts:
            return _marked(x, *bounds)
        # Whole numbers of a small range are sorted as narrower ones, in half the passes.
        low = bounds[0] if bounds and x.dtype == int64 and span < 1 << 31 else None
        keys = x if low is None else ops.to(x - low, int32)
        ordered, order = ops.sort(keys, 0) if return_inverse else (ops._sorted_values(keys), keys)
        if low is not None:
            ordered = ops.to(ordered, int64) + low
    else:
        order = ops._lexicographic_order(x)
        ordered = ops.index_select(x, 0, order)
    return _runs(input, ordered, order, return_inverse, return_counts, dim)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The first of every run of equal elements, or of equal slices along `dim`.

    Args:
      return_inverse: also to which run each element belongs.
      return_counts: also the lengths of the runs.

    Returns:
      values, or (values[, inverse][, counts]).
    """
    _check_flags("unique_consecutive", return_inverse=return_inverse, return_counts=return_counts)
    x = _slices("unique_consecutive", input, dim)
    order = ops.arange(x.shape[0], dtype=int64, device=x.device)
    return _runs(input, x, order, return_inverse, return_counts, dim)


def _check_flags(name: str, **flags: bool) -> None:
    for flag, value in flags.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name}(): argument '{flag}' must be bool, not {type(value).__name__}")


def _slices(name: str, input: Tensor, dim: int | None) -> Tensor:
    """The elements in one dimension, or slices along `dim` as rows."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}: got {type(input).__name__}, expected a Tensor")
    x = input.detach()
    if dim is None:
        return ops.reshape(x, [-1])
    x = ops.movedim(x, dim, 0)
    if 0 in x.shape[1:]:
        raise RuntimeError(
            f"{name}: got shape {tuple(input.shape)}, expected no empty dimension besides dim {dim}"
        )
    return ops.flatten(x, 1) if x.ndim > 1 else ops.unsqueeze(x, 1)


def _bounds(x: Tensor) -> tuple[int, int] | None:
    """The least and the greatest of many whole numbers on a device, for which they are waited for."""
    if x.dtype not in _WHOLE or x.device.type == "cpu" or x.numel() <= 1 << 12:
        return None
    low, high = ops.stack(ops.aminmax(x)).tolist()
    return low, high


def _marked(x: Tensor, low: int, high: int) -> Tensor:
    """The distinct numbers of a small range, by a mark for each that occurs."""
    marks = ops.zeros([high - low + 1], dtype=bool_, device=x.device)
    places = ops.to(x, int64)
    ops.scatter_(marks, 0, places - low if low else places, True)
    return ops.to(ops.reshape(ops.nonzero(marks), [-1]) + low, x.dtype)


def _runs(
    input: Tensor,
    ordered: Tensor,
    order: Tensor,
    return_inverse: bool,
    return_counts: bool,
    dim: int | None,
) -> Any:
    if dim is None and not return_inverse and not return_counts:
        return ops._distinct_neighbours(ordered)
    n = ordered.shape[0]
    starts = ops._run_starts(ordered)
    at = ops.reshape(ops.nonzero(starts), [-1])
    if dim is None:
        found = [ops.index_select(ordered, 0, at)]
    else:
        first = ops.index_select(order, 0, at)
        slices = ops.index_select(ops.movedim(input.detach(), dim, 0), 0, first)
        found = [ops.movedim(slices, 0, dim)]
    if return_inverse:
        inverse = ops._run_places(starts, order)
        found.append(ops.reshape(inverse, list(input.shape)) if dim is None else inverse)
    if return_counts:
        end = ops.full([1], n, dtype=int64, device=ordered.device)
        found.append(ops.diff(ops.cat([at, end])))
    return found[0] if len(found) == 1 else tuple(found)


class Histogram(NamedTuple):
    """The result of histogramdd."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]

    def __repr__(self) -> str:
        return (
            f"argand.return_types.histogramdd(\nhist={self.hist!r},\nbin_edges={self.bin_edges!r})"
        )


# Where the named tuples of other operators are found.
Histogram.__name__ = Histogram.__qualname__ = "histogramdd"
Histogram.__module__ = "argand.return_types"


def histogramdd(
    input: Tensor,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """The (weighted) number of points in each cell of a grid.

    Args:
      input: points of N coordinates, (..., N).
      bins: the number of intervals, one for all or one for each dimension; or the edges of the intervals in each dimension.
      range: the least and the greatest edge of each dimension, 2 N numbers; those of the points by default.
      weight: of each point, (...).
      density: divide by the total and by the cells' volumes.

    Returns:
      (hist, bin_edges): a tensor of N dimensions, and the edges in each.

    Raises:
      RuntimeError: when sizes or dtypes do not fit.
    """
    require_tensors("histogramdd", input=input)
    if input.ndim < 2:
        raise RuntimeError(
            f"histogramdd: got shape {tuple(input.shape)}, expected points in rows (at least 2 dimensions)"
        )
    n = input.shape[-1]
    points = ops.reshape(input.detach(), [-1, n])
    given = [bins] * n if isinstance(bins, int) else list(bins)
    if len(given) != n or (range is not None and len(range) != 2 * n):
        raise RuntimeError(
            f"histogramdd: got {len(given)} bins and range {range} for {n} dimensions, expected one of bins and two numbers of range for each"
        )
    if weight is not None and tuple(weight.shape) != tuple(input.shape[:-1]):
        raise RuntimeError(
            f"histogramdd: got weights of shape {tuple(weight.shape)}, expected {tuple(input.shape[:-1])}, one for each point"
        )
    amount = (
        ops.ones([points.shape[0]], dtype=input.dtype, device=input.device)
        if weight is None
        else ops.reshape(weight, [-1])
    )
    cell = ops.zeros([points.shape[0]], dtype=int64, device=input.device)
    edges: list[Tensor] = []
    for d in _range(n):
        x = ops.contiguous(ops.select(points, 1, d))
        here = None if range is None else list(range[2 * d : 2 * d + 2])
        bin = given[d]
        wanted = bin if isinstance(bin, Tensor) else ops.histogram(x, bin, range=here)[1]
        parts = wanted.shape[0] - 1
        inside = ops.logical_and(ops.ge(x, wanted[0]), ops.le(x, wanted[-1]))
        at = ops.clamp(ops.searchsorted(wanted, x, right=True) - 1, 0, max(parts - 1, 0))
        cell = cell * parts + at
        amount = ops.where(inside, amount, 0)
        edges.append(wanted)
    sizes = [e.shape[0] - 1 for e in edges]
    total = 1
    for size in sizes:
        total *= size
    hist = ops.index_add(
        ops.zeros([total], dtype=input.dtype, device=input.device), 0, cell, amount
    )
    hist = ops.reshape(hist, sizes)
    if density:
        hist = hist / ops.sum(hist)
        for d, e in enumerate(edges):
            hist = hist / ops.reshape(ops.diff(e), [-1 if i == d else 1 for i in _range(n)])
    return Histogram(hist, tuple(edges))


def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Derivatives along dimensions by central differences, and one-sided ones at the ends.

    Args:
      spacing: the distance of neighbours, one for each dimension, or their coordinates as tensors.
      dim: one or several dimensions; all by default.
      edge_order: 1 or 2, the order of accuracy at the ends.
    """
    require_tensors("gradient", input=input)
    if edge_order not in (1, 2):
        raise RuntimeError(f"gradient: got edge_order {edge_order}, expected 1 or 2")
    if dim is None:
        dims = list(range(input.ndim))
    else:
        dims = [operator.index(dim)] if hasattr(dim, "__index__") else list(dim)
        for d in dims:
            if not -input.ndim <= d < input.ndim:
                raise IndexError(
                    f"gradient: got dim {d}, expected one of the {input.ndim} dimensions of the input"
                )
        dims = [d % input.ndim for d in dims]
    if len(set(dims)) < len(dims):
        raise RuntimeError(
            f"gradient: dim {next(d for d in dims if dims.count(d) > 1)} appears multiple times in the list of dims"
        )
    spacing = 1 if spacing is None else spacing
    spacings: Sequence[Any] = (
        spacing if isinstance(spacing, (tuple, list)) else [spacing] * len(dims)
    )
    if len(spacings) != len(dims):
        raise RuntimeError(
            f"gradient: got {len(spacings)} spacings for {len(dims)} dimensions, expected as many"
        )
    x = input if input.is_floating_point() or input.is_complex() else input.to(get_default_dtype())
    found = []
    for d, step in zip(dims, spacings, strict=True):
        if x.shape[d] < edge_order + 1:
            raise RuntimeError(
                f"gradient: got size {x.shape[d]} in dimension {d}, expected at least edge_order + 1"
            )
        if isinstance(step, Tensor) and step.ndim == 1:
            if step.shape[0] != x.shape[d]:
                raise RuntimeError(
                    f"gradient: got {step.shape[0]} coordinates for size {x.shape[d]} of dimension {d}, expected as many"
                )
            found.append(_derivative(x, d, ops.diff(step), edge_order))
        else:
            found.append(_even_derivative(x, d, float(step), edge_order))
    return tuple(found)


def _even_derivative(x: Tensor, d: int, step: float, edge_order: int) -> Tensor:
    """Of neighbours `step` apart."""
    n = x.shape[d]

    def part(start: int, count: int = 1) -> Tensor:
        return ops.narrow(x, d, start, count)

    if edge_order == 1:
        first, last = part(1) - part(0), part(n - 1) - part(n - 2)
    else:
        first = part(0) * -1.5 + part(1) * 2 - part(2) * 0.5
        last = part(n - 1) * 1.5 - part(n - 2) * 2 + part(n - 3) * 0.5
    parts = [first / step]
    if n > 2:
        parts.append((part(2, n - 2) - part(0, n - 2)) / (2 * step))
    return ops.cat([*parts, last / step], d)


def _derivative(x: Tensor, d: int, steps: Tensor, edge_order: int) -> Tensor:
    n, shape = x.shape[d], [-1 if i == d else 1 for i in range(x.ndim)]

    def part(start: int, count: int) -> Tensor:
        return ops.narrow(x, d, start, count)

    h = ops.reshape(steps, shape)

    def step(start: int, count: int) -> Tensor:
        return ops.narrow(h, d, start, count)

    def end(first: int, towards: int) -> Tensor:
        """The derivative at one end, whose neighbours lie in the direction `towards`."""
        a = step(first if towards > 0 else first - 1, 1)
        if edge_order == 1:
            return (part(first + towards, 1) - part(first, 1)) / a * towards
        b = step(first + 1 if towards > 0 else first - 2, 1)
        near, far = part(first + towards, 1), part(first + 2 * towards, 1)
        return (
            (near - part(first, 1)) * (a + b) / (a * b) - (far - part(first, 1)) * a / (b * (a + b))
        ) * towards

    parts = [end(0, 1)]
    if n > 2:
        a, b = step(0, n - 2), step(1, n - 2)
        parts.append(
            (part(2, n - 2) * (a / b) - part(0, n - 2) * (b / a) + part(1, n - 2) * (b / a - a / b))
            / (a + b)
        )
    parts.append(end(n - 1, -1))
    return ops.cat(parts, d)
