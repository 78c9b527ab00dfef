"""Multivariate normal distributions with a covariance of low rank and a diagonal."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.multivariate_normal import _batch_mahalanobis, _batch_mv, half_log_det
from argand.distributions.utils import Shape, _standard_normal, lazy_property
from argand_c10 import Size, Tensor

__all__ = ["LowRankMultivariateNormal"]


def plus_eye(matrix: Tensor) -> Tensor:
    """matrix + I."""
    return matrix + aten.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def lowrank_log_det(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:
    """log det(W W^T + diag(D)), by the determinant of the capacitance matrix I + W^T D^-1 W, of which the Cholesky factor is given."""
    return 2 * half_log_det(capacitance_tril) + D.log().sum(-1)


def lowrank_mahalanobis(W: Tensor, D: Tensor, x: Tensor, capacitance_tril: Tensor) -> Tensor:
    """x^T (W W^T + diag(D))^-1 x, by M. Woodbury's formula."""
    inner = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.square() / D).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


class LowRankMultivariateNormal(Distribution):
    """Normally distributed vectors (D) with the covariance W W^T + diag(d), W = `cov_factor`, d = `cov_diag`; the work grows with the rank.

    Args:
      loc: the mean (..., D).
      cov_factor: W (..., D, rank).
      cov_diag: d (..., D), positive.

    Raises:
      ValueError: for shapes that do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        shapes = f"loc {tuple(loc.shape)}, cov_factor {tuple(cov_factor.shape)}, cov_diag {tuple(cov_diag.shape)}"
        event_shape = loc.shape[-1:]
        if (
            loc.dim() < 1
            or cov_factor.dim() < 2
            or cov_factor.shape[-2:-1] != event_shape
            or cov_diag.shape[-1:] != event_shape
        ):
            raise ValueError(
                f"LowRankMultivariateNormal: got {shapes}, expected (..., D), (..., D, rank), (..., D)"
            )
        try:
            column, self.cov_factor, diagonal = aten.broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as error:
            raise ValueError(
                f"LowRankMultivariateNormal: got {shapes}, expected batch shapes that can be broadcast"
            ) from error
        self.loc, self.cov_diag = column[..., 0], diagonal[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        weighted = cov_factor.mT / cov_diag.unsqueeze(-2)
        self._capacitance_tril = aten.ops.linalg_cholesky(plus_eye(weighted @ cov_factor))
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: LowRankMultivariateNormal | None = None
    ) -> LowRankMultivariateNormal:
        return self._expanded(
            LowRankMultivariateNormal,
            batch_shape,
            _instance,
            _unbroadcasted_cov_factor=self._unbroadcasted_cov_factor,
            _unbroadcasted_cov_diag=self._unbroadcasted_cov_diag,
            _capacitance_tril=self._capacitance_tril,
        )

    @property
    def _parts(self) -> tuple[Tensor, Tensor]:
        """W and d as they were given."""
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        W, d = self._parts
        return (W.square().sum(-1) + d).expand(self._extended_shape())

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        W, d = self._parts
        root = d.sqrt().unsqueeze(-1)
        scaled = W / root
        factor = root * aten.ops.linalg_cholesky(plus_eye(scaled @ scaled.mT))
        return factor.expand((*self._batch_shape, -1, -1))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """W W^T + diag(d)."""
        W, d = self._parts
        return (W @ W.mT + d.diag_embed()).expand((*self._batch_shape, -1, -1))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Its inverse."""
        W, d = self._parts
        inner = aten.ops.linalg_solve_triangular(
            self._capacitance_tril, W.mT / d.unsqueeze(-2), upper=False
        )
        inverse = d.reciprocal().diag_embed() - inner.mT @ inner
        return inverse.expand((*self._batch_shape, -1, -1))

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        W, d = self._parts
        shape = self._extended_shape(sample_shape)
        inner = _standard_normal((*shape[:-1], W.shape[-1]), self.loc.dtype, self.loc.device)
        noise = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(W, inner) + d.sqrt() * noise

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        W, d = self._parts
        distance = lowrank_mahalanobis(W, d, value - self.loc, self._capacitance_tril)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + lowrank_log_det(W, d, self._capacitance_tril) + distance)

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        log_det = lowrank_log_det(*self._parts, self._capacitance_tril)
        return (0.5 * (constant + log_det)).expand(self._batch_shape)
