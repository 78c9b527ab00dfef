"""Differentiable maps between regions, with inverses and the logarithms of their Jacobian determinants.

A transform maps events of its `domain` to events of its `codomain`; both are constraints, whose `event_dim` says how many dimensions an event has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.transform import (
    ComposeTransform,
    IndependentTransform,
    PlainTransform,
    Transform,
    check_dims,
    identity_transform,
    independent,
)
from argand.distributions.utils import (
    NUMBERS,
    Shape,
    _sum_rightmost,
    broadcast_all,
    lazy_property,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from argand_c10 import Size, Tensor, finfo

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform", "ExpTransform",
    "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform",
    "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class ReshapeTransform(Transform):
    """Events of `in_shape` as events of `out_shape`.

    Raises:
      ValueError: for shapes of different numbers of elements.
    """

    bijective = True

    def __init__(self, in_shape: Shape, out_shape: Shape, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"ReshapeTransform: got {tuple(in_shape)} and {tuple(out_shape)}, expected shapes of as many elements"
            )
        super().__init__(cache_size=cache_size)

    def _copy(self, cache_size: int) -> Any:
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def _replaced(self, shape: Shape, old: Size, new: Size) -> Any:
        check_dims(self, shape, len(old))
        cut = len(shape) - len(old)
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(
                f"ReshapeTransform: got the shape {tuple(shape)}, expected its last sizes to be {tuple(old)}"
            )
        return Size(shape[:cut]) + new

    def forward_shape(self, shape: Shape) -> Any:
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Any:
        return self._replaced(shape, self.out_shape, self.in_shape)


class ExpTransform(PlainTransform):
    """y = exp(x)."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x^exponent of positive numbers."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def _copy(self, cache_size: int) -> Any:
        return PowerTransform(self.exponent, cache_size)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _is_same(self.exponent, other.exponent)

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Shape) -> Any:
        return aten.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _is_same(a: Tensor | float, b: Tensor | float) -> bool:
    if isinstance(a, NUMBERS) and isinstance(b, NUMBERS):
        return a == b
    return bool((a == b).all())  # type: ignore[union-attr]


class SigmoidTransform(PlainTransform):
    """y = 1 / (1 + exp(-x)), kept off 0 and 1."""

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return _inside(x.sigmoid())

    def _inverse(self, y: Tensor) -> Tensor:
        y = _inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -aten.softplus(-x) - aten.softplus(x)


def _inside(y: Tensor) -> Tensor:
    """Numbers of [0, 1] with the ends moved to the next ones that have logarithms."""
    limits = finfo(y.dtype)
    return y.clamp(min=limits.tiny, max=1.0 - limits.eps)


class SoftplusTransform(PlainTransform):
    """y = log(1 + exp(x)), x itself above 20."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return aten.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -aten.softplus(-x)


class TanhTransform(PlainTransform):
    """y = tanh(x). A cache is of use: the inverse is inexact near the ends."""

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (
            math.log(2.0) - x - aten.softplus(-2.0 * x)
        )  # log(1 - y^2) without its cancellation


class AbsTransform(PlainTransform):
    """y = |x|; of the inverses it gives the one that is not negative."""

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x.

    Args:
      loc, scale: tensors or numbers.
      event_dim: the dimensions of an event.
    """

    bijective = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        event_dim: int = 0,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    def _copy(self, cache_size: int) -> Any:
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size)

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return independent(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return independent(constraints.real, self.event_dim)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _is_same(self.loc, other.loc)
            and _is_same(self.scale, other.scale)
        )

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, NUMBERS):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, NUMBERS):
            terms = aten.full_like(x, math.log(abs(self.scale)))
        else:
            terms = self.scale.abs().log().expand(x.shape)
        return _sum_rightmost(terms, self.event_dim)

    def forward_shape(self, shape: Shape) -> Any:
        parts = [v.shape for v in (self.loc, self.scale) if not isinstance(v, NUMBERS)]
        return aten.broadcast_shapes(shape, *parts)

    inverse_shape = forward_shape


class CorrCholeskyTransform(Transform):
    """Vectors (D (D - 1) / 2) to Cholesky factors (D, D) of correlation matrices, by tanh and canonical partial correlations.

    Source: D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based on vines and extended onion method", 2009.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (
            (1 - partial.square()).sqrt().cumprod(-1)
        )  # what the elements before leave of a row's length
        eye = aten.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        return (partial + eye) * _after_one(left[..., :-1])

    def _inverse(self, y: Tensor) -> Tensor:
        left = _after_one((1 - y.square().cumsum(-1))[..., :-1])
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (partial.log1p() - (-partial).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - y.square().cumsum(-1), diag=-2)
        tanh_part = 2 * (math.log(2.0) - x - aten.softplus(-2 * x)).sum(-1)
        return 0.5 * left.log().sum(-1) + tanh_part

    def forward_shape(self, shape: Shape) -> Any:
        check_dims(self, shape, 1)
        n = shape[-1]
        size = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != n:
            raise ValueError(
                f"CorrCholeskyTransform: got vectors of {n} elements, expected as many as lie below a diagonal"
            )
        return Size(shape[:-1]) + (size, size)

    def inverse_shape(self, shape: Shape) -> Any:
        check_dims(self, shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError(
                f"CorrCholeskyTransform: got the shape {tuple(shape)}, expected square matrices"
            )
        return Size(shape[:-2]) + (shape[-1] * (shape[-1] - 1) // 2,)


def _after_one(x: Tensor) -> Tensor:
    """x (..., n) with a 1 before it (..., n + 1)."""
    return aten.cat([x.new_ones((*x.shape[:-1], 1)), x], -1)


class SoftmaxTransform(PlainTransform):
    """y = exp(x) / sum(exp(x)); x + c gives the same, of which the inverse is log(y)."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Shape) -> Any:
        check_dims(self, shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(PlainTransform):
    """Vectors (K) to the simplex (K + 1): each number says how much of the rest of a stick its part takes, a fair share at x = 0."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offset(x: Tensor, n: int) -> Tensor:
        """log of the number of parts that share the rest: n, ..., 1."""
        return aten.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        share = _inside((x - self._offset(x, x.shape[-1])).sigmoid())
        rest = (1 - share).cumprod(-1)
        whole = aten.cat([share, share.new_ones((*share.shape[:-1], 1))], -1)
        return whole * _after_one(rest)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        rest = (1 - parts.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return parts.log() - rest.log() + self._offset(y, parts.shape[-1])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x, x.shape[-1])
        return (y[..., :-1].log() - aten.softplus(x)).sum(-1)

    def forward_shape(self, shape: Shape) -> Any:
        check_dims(self, shape, 1)
        return Size(shape[:-1]) + (shape[-1] + 1,)

    def inverse_shape(self, shape: Shape) -> Any:
        check_dims(self, shape, 1)
        return Size(shape[:-1]) + (shape[-1] - 1,)


class LowerCholeskyTransform(PlainTransform):
    """Square matrices to lower triangular ones with a positive diagonal, the exponential of theirs."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(PlainTransform):
    """Square matrices to positive definite ones, L L^T with L of LowerCholeskyTransform."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(aten.ops.linalg_cholesky(y))  # type: ignore[no-any-return]


class _PartsTransform(Transform):
    """One transform a part along `dim`."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        for each in tseq:
            _require(
                isinstance(each, Transform), self, f"got {type(each).__name__}, expected Transforms"
            )
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _size(self) -> int:
        raise NotImplementedError

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _parts_of(self, x: Tensor) -> Sequence[Tensor]:
        _require(
            -x.dim() <= self.dim < x.dim(),
            self,
            f"got {x.dim()} dimensions, expected dim {self.dim} among them",
        )
        _require(
            x.shape[self.dim] == self._size(),
            self,
            f"got the shape {tuple(x.shape)}, expected {self._size()} in dim {self.dim}",
        )
        return self._split(x)

    def _each(self, maps: Sequence[Callable[[Tensor], Tensor]], x: Tensor) -> Tensor:
        return self._join([f(part) for f, part in zip(maps, self._parts_of(x), strict=True)])

    def _call(self, x: Tensor) -> Tensor:
        return self._each(self.transforms, x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._each([t.inv for t in self.transforms], y)

    def _log_dets(self, x: Tensor, y: Tensor) -> list[Tensor]:
        pairs = zip(self.transforms, self._parts_of(x), self._parts_of(y), strict=True)
        return [t.log_abs_det_jacobian(part, to) for t, part, to in pairs]

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)


def _require(condition: bool, transform: Transform, message: str) -> None:
    """PyTorch has AssertionErrors here."""
    if not condition:
        raise AssertionError(f"{type(transform).__name__}: {message}")


class CatTransform(_PartsTransform):
    """Transforms of the parts, of `lengths` along `dim` (default 1 each), of what `cat` joins.

    t = CatTransform([ExpTransform(), identity_transform], dim=0, lengths=[10, 20])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        _require(
            len(self.lengths) == len(self.transforms),
            self,
            f"got {len(self.lengths)} lengths, expected {len(self.transforms)}",
        )

    def _copy(self, cache_size: int) -> Any:
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    @lazy_property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The size along `dim`."""
        return sum(self.lengths)

    def _size(self) -> int:
        return self.length

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        return x.split(self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return aten.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self._log_dets(x, y), self.transforms, strict=True)
        terms = [_sum_rightmost(term, self.event_dim - t.event_dim) for term, t in pairs]
        # The place of `dim` from the end, without the dimensions of an event.
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return aten.cat(terms, dim) if dim < 0 else sum(terms[1:], terms[0])

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_PartsTransform):
    """Transforms of the parts along `dim` of what `stack` joins."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def _copy(self, cache_size: int) -> Any:
        return StackTransform(self.transforms, self.dim, cache_size)

    def _size(self) -> int:
        return len(self.transforms)

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        return x.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return aten.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self._join(self._log_dets(x, y))

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """y = distribution.cdf(x), evenly distributed where x is distributed so.

    Args:
      distribution: a univariate one with `cdf`, and `icdf` for the inverse.
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    def _copy(self, cache_size: int) -> Any:
        return CumulativeDistributionTransform(self.distribution, cache_size)

    @property
    def domain(self) -> Any:
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)  # type: ignore[no-any-return]
