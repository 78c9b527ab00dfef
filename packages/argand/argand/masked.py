"""Reductions, scans and normalisations of the elements that a mask chooses.

A mask is a bool tensor that broadcasts to its input's shape: True where an element takes part. What does not take part is as if it were not
there: it counts as the operation's identity (0 of a sum, 1 of a product, minus infinity of a maximum), and results of no element at all are
that identity, or NaN where there is none. Without a mask every element takes part. Results have the input's dtype unless `dtype` says
otherwise; sums and products of integers and bools are int64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import argand_aten as aten
import argand_c10 as c10
from argand_c10 import Tensor, dtype, get_default_dtype, iinfo

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm", "normalize",
    "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip

Dims = int | Sequence[int] | None


def _mask_of(name: str, input: Tensor, mask: Tensor) -> Tensor:
    """The mask as bools of the input's shape."""
    if mask.ndim > input.ndim:
        raise IndexError(
            f"masked.{name}: got a mask of shape {list(mask.shape)} for an input of shape {list(input.shape)}, "
            "expected a mask that broadcasts to it: give it at most as many dimensions"
        )
    return mask.to(c10.bool).expand(input.shape)


def _fill(name: str, input: Tensor, mask: Tensor | None, value: float) -> Tensor:
    """The input with `value` (an infinity is the dtype's lowest or highest number) where the mask is False."""
    if mask is None:
        return input
    if abs(value) == math.inf and not (input.is_floating_point() or input.is_complex()):
        if input.dtype == c10.bool:
            value = value > 0
        else:
            limits = iinfo(input.dtype)
            value = limits.max if value > 0 else limits.min
    identity = aten.full((), value, dtype=input.dtype, device=input.device)
    return aten.where(_mask_of(name, input, mask), input, identity)


def _dims(input: Tensor, dim: Dims) -> list[int]:
    """The dimensions to reduce: all of them for None and for none."""
    if isinstance(dim, int):
        return [dim]
    return list(dim) if dim else list(range(input.ndim))


def _summed(input: Tensor, wanted: dtype | None) -> dtype:
    if wanted is not None:
        return wanted
    return input.dtype if input.is_floating_point() or input.is_complex() else c10.int64


def _inexact(name: str, input: Tensor, wanted: dtype | None) -> dtype:
    wanted = input.dtype if wanted is None else wanted
    if not (wanted.is_floating_point or wanted.is_complex):
        raise ValueError(
            f"masked.{name}: got dtype {wanted}, expected a floating point or complex one: give dtype="
        )
    return wanted


def sum(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The sum over `dim` (all dimensions if None) of the elements that take part; 0 of none."""
    filled = _fill("sum", input, mask, 0)
    return aten.sum(filled, _dims(input, dim), keepdim=keepdim, dtype=_summed(input, dtype))


def prod(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The product over `dim` (all dimensions if None) of the elements that take part; 1 of none."""
    result = _fill("prod", input, mask, 1).to(_summed(input, dtype))
    for d in sorted((d % max(input.ndim, 1) for d in _dims(input, dim)), reverse=True):
        result = aten.prod(result, d, keepdim=keepdim)
    return result


def cumsum(
    input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The running sum along `dim`; elements that do not take part add 0."""
    return aten.cumsum(_fill("cumsum", input, mask, 0), dim, dtype=dtype or input.dtype)


def cumprod(
    input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The running product along `dim`; elements that do not take part are 1."""
    return aten.cumprod(_fill("cumprod", input, mask, 1), dim, dtype=dtype or input.dtype)


def amax(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The greatest element over `dim` (all dimensions if None) of those that take part; minus infinity, or an integer dtype's lowest number, of none."""
    filled = _fill("amax", input, mask, -math.inf)
    return aten.amax(filled, _dims(input, dim), keepdim=keepdim).to(dtype or input.dtype)


def amin(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The least element over `dim` (all dimensions if None) of those that take part; infinity, or an integer dtype's highest number, of none."""
    filled = _fill("amin", input, mask, math.inf)
    return aten.amin(filled, _dims(input, dim), keepdim=keepdim).to(dtype or input.dtype)


def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the greatest element that takes part is, along `dim` or in the flattened input, in the input's dtype unless `dtype` says otherwise."""
    filled = _fill("argmax", input, mask, -math.inf)
    return aten.argmax(filled, dim, keepdim=keepdim).to(dtype or input.dtype)


def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Where the least element that takes part is, along `dim` or in the flattened input, in the input's dtype unless `dtype` says otherwise."""
    filled = _fill("argmin", input, mask, math.inf)
    return aten.argmin(filled, dim, keepdim=keepdim).to(dtype or input.dtype)


def _count(name: str, input: Tensor, dims: list[int], mask: Tensor | None) -> Tensor:
    """How many elements take part, with the reduced dimensions kept."""
    ones = aten.ones((), dtype=c10.int64, device=input.device).expand(input.shape)
    return aten.sum(_fill(name, ones, mask, 0), dims, keepdim=True)


def _drop(input: Tensor, dims: list[int], keepdim: bool) -> Tensor:
    return input if keepdim or not dims else aten.squeeze(input, tuple(dims))


def mean(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The mean over `dim` (all dimensions if None) of the elements that take part; NaN of none.

    Raises:
        ValueError: if the result's dtype is neither floating point nor complex.
    """
    wanted, dims = _inexact("mean", input, dtype), _dims(input, dim)
    total = sum(input, dims, keepdim=True, dtype=wanted, mask=mask)
    return _drop(total / _count("mean", input, dims, mask), dims, keepdim)


def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The (lower) median along `dim` of the elements that take part; NaN of none.

    Raises:
        ValueError: if nothing of a row takes part and the dtype has no NaN.
    """
    del dtype  # as PyTorch, which takes and ignores it
    if input.is_floating_point():
        return aten.nanmedian(_fill("median", input, mask, math.nan), dim, keepdim).values
    if mask is None:
        return aten.median(input, dim, keepdim).values
    if not bool(_mask_of("median", input, mask).any(dim).all()):
        raise ValueError(
            f"masked.median: got a mask that chooses nothing of a row and dtype {input.dtype}, which has no NaN; "
            "expected a floating point input"
        )
    widened = _fill("median", input.to(c10.float64), mask, math.nan)
    return aten.nanmedian(widened, dim, keepdim).values.to(input.dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of order `ord` over `dim` (all dimensions if None) of the elements that take part; 0 of none, infinity for negative orders."""
    order = 2.0 if ord is None else ord
    filled = _fill("norm", input, mask, math.inf if order < 0 else 0)
    return aten.ops.linalg_vector_norm(filled, order, _dims(input, dim), keepdim, dtype=dtype)


def _variance(
    name: str,
    input: Tensor,
    dim: Dims,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: dtype | None,
    mask: Tensor | None,
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise ValueError(
            f"masked.{name}: got unbiased={unbiased} and correction={correction}, expected one of them: leave out unbiased"
        )
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    exact = not (input.is_floating_point() or input.is_complex())
    values = input.to(dtype or (get_default_dtype() if exact else input.dtype))
    dims = _dims(input, dim)
    count = _count(name, input, dims, mask)
    centre = sum(values, dims, keepdim=True, mask=mask) / count
    deviation = _fill(name, values - centre, mask, 0)
    squares = deviation * deviation.conj()
    divisor = aten.clamp(count - correction, min=0)
    total = aten.sum(aten.real(squares) if squares.is_complex() else squares, dims, keepdim=True)
    quotient = total / divisor
    return _drop(quotient.to(values.dtype), dims, keepdim)


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance over `dim` (all dimensions if None) of the elements that take part; of complex ones a complex number without imaginary part.

    Args:
        unbiased: divide by one less than their number (the default), or by it if False.
        correction: what to subtract from their number instead.

    Raises:
        ValueError: if both `unbiased` and `correction` are given.
    """
    return _variance("var", input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation over `dim`: the square root of `var`, whose arguments it has."""
    return aten.sqrt(_variance("std", input, dim, unbiased, correction, keepdim, dtype, mask))


def softmax(
    input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """softmax along `dim` over the elements that take part, 0 at the others; NaN in rows of none."""
    return aten.softmax(_fill("softmax", input, mask, -math.inf), dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of `softmax`, minus infinity at the elements that do not take part."""
    return aten.log_softmax(_fill("log_softmax", input, mask, -math.inf), dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """`softmax` of the negated elements."""
    filled = _fill("softmin", input, mask, math.inf)
    return aten.softmax(-filled, dim, dtype=dtype)


def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements that take part over their norm of order `ord` along `dim`, or over `eps` if it is greater; 0 at the others."""
    values = _fill("normalize", input if dtype is None else input.to(dtype), mask, 0)
    length = norm(values, ord, dim, keepdim=True, mask=mask)
    return values / aten.clamp(length, min=eps)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: dtype | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(exp(input) + exp(other)) of the elements that take part, each tensor with its own mask."""
    wanted = dtype or input.dtype
    return aten.logaddexp(
        _fill("logaddexp", input, input_mask, -math.inf),
        _fill("logaddexp", other, other_mask, -math.inf),
    ).to(wanted)


def logsumexp(
    input: Tensor,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of exponentials over `dim` (all dimensions if None) of the elements that take part; minus infinity of none."""
    wanted = dtype or input.dtype
    filled = _fill("logsumexp", input.to(wanted), mask, -math.inf)
    return aten.logsumexp(filled, _dims(input, dim), keepdim).to(wanted)
