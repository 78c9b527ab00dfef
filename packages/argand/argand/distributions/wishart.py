"""Wishart's distribution."""

from __future__ import annotations

import math
import warnings

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.chi2 import Chi2
from argand.distributions.exp_family import ExponentialFamily
from argand.distributions.multivariate_normal import half_log_det, one_of_three, scale_tril_of
from argand.distributions.utils import NUMBERS, Shape, lazy_property
from argand_c10 import Size, Tensor, as_tensor, finfo

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """Positive definite matrices (D, D): sums of x x^T over `df` normal vectors x of mean 0 and a covariance, which is given in one of three ways.

    Args:
      df: degrees of freedom, above D - 1, whole or not.
      covariance_matrix: (..., D, D), positive definite.
      precision_matrix: its inverse.
      scale_tril: its Cholesky factor, lower triangular with a positive diagonal.

    Raises:
      AssertionError: unless one of the three is given.
      ValueError: for matrices with less than two dimensions, and a df up to D - 1.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = one_of_three(covariance_matrix, precision_matrix, scale_tril, AssertionError)
        if matrix.dim() < 2:
            raise ValueError(
                f"Wishart: got {name} of shape {tuple(matrix.shape)}, expected (..., D, D)"
            )
        if isinstance(df, NUMBERS):
            df = as_tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape = aten.broadcast_shapes(matrix.shape[:-2], df.shape)
        size = matrix.shape[-1]
        self.df: Tensor = df.expand(batch_shape)
        checks = self._validate_args if validate_args is None else validate_args
        if checks and (self.df <= size - 1).any():
            raise ValueError(f"Wishart: got df={df}, expected it above D - 1 = {size - 1}")
        if checks and (self.df < size).any():
            warnings.warn(
                f"Wishart: got df below D = {size}: samples will often be singular", stacklevel=2
            )
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._size - 1),
        }

    @property
    def _size(self) -> int:
        return self._event_shape[-1]

    def expand(self, batch_shape: Shape, _instance: Wishart | None = None) -> Wishart:
        factor = self._unbroadcasted_scale_tril
        return self._expanded(Wishart, batch_shape, _instance, _unbroadcasted_scale_tril=factor)

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._unbroadcasted_scale_tril.expand((*self._batch_shape, -1, -1))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand((*self._batch_shape, -1, -1))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        inverse = aten.cholesky_inverse(self._unbroadcasted_scale_tril)
        return inverse.expand((*self._batch_shape, -1, -1))

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """NaN up to df D + 1."""
        factor = self.df - self._size - 1
        factor = factor.masked_fill(factor <= 0, float("nan"))
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (V.square() + products)

    @lazy_property
    def _dist_chi2(self) -> Chi2:
        """Of the squared diagonal elements: df, df - 1, ..., df - D + 1 degrees of freedom."""
        lost = aten.arange(self._size, dtype=self.df.dtype, device=self.df.device)
        return Chi2(self.df.unsqueeze(-1) - lost, validate_args=False)

    def _bartlett_sampling(self, sample_shape: Shape) -> Tensor:
        """M. S. Bartlett, "On the theory of statistical regression", 1933."""
        diagonal = self._dist_chi2.rsample(sample_shape).sqrt()
        diagonal = diagonal.clamp(min=finfo(diagonal.dtype).eps)
        shape = self._extended_shape(sample_shape)
        below = aten.randn(shape, dtype=diagonal.dtype, device=diagonal.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + diagonal.diag_embed())
        return factor @ factor.mT

    def rsample(
        self,
        sample_shape: Shape = Size(),  # noqa: B008
        max_try_correction: int | None = None,
    ) -> Tensor:
        """Matrices with gradients.

        Args:
          max_try_correction: how often singular ones are drawn anew; None is 10 times.
        """
        sample = self._bartlett_sampling(sample_shape)
        for _ in range(10 if max_try_correction is None else max_try_correction):
            is_valid = self.support.check(sample)
            if is_valid.all():
                return sample
            sample = aten.where(
                is_valid[..., None, None], sample, self._bartlett_sampling(sample_shape)
            )
        if not self.support.check(sample).all():
            warnings.warn("Wishart: got singular samples", stacklevel=2)
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p, factor = self.df, self._size, self._unbroadcasted_scale_tril
        trace = aten.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        log_det = aten.ops.linalg_slogdet(value)[1]
        normalizer = nu * (p * math.log(2) / 2 + half_log_det(factor)) + aten.mvlgamma(nu / 2, p)
        return (nu - p - 1) / 2 * log_det - trace / 2 - normalizer

    def entropy(self) -> Tensor:
        nu, p = self.df, self._size
        scale = (p + 1) * (p * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
        return (
            scale + aten.mvlgamma(nu / 2, p) - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p) + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._size - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        p = self._size
        power = y + (p + 1) / 2
        return power * (p * math.log(2) - aten.ops.linalg_slogdet(-2 * x)[1]) + aten.mvlgamma(
            power, p
        )


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of mvlgamma(x, p)."""
    half = aten.arange(p, dtype=x.dtype, device=x.device) / 2
    return (x.unsqueeze(-1) - half).digamma().sum(-1)
