"""The multivariate normal distribution."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.utils import Shape, _standard_normal, lazy_property
from argand_c10 import Size, Tensor

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Products of matrices (..., n, m) and vectors (..., m)."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x of Cholesky factors L (*batch, n, n) and vectors x (*samples, *batch, n), by one triangular solution a factor."""
    samples = x.shape[: max(x.dim() + 1 - factor.dim(), 0)]
    columns = x.reshape((math.prod(samples), *x.shape[len(samples) :])).movedim(0, -1)
    found = aten.ops.linalg_solve_triangular(factor, columns, upper=False).square().sum(-2)
    return found.movedim(-1, 0).reshape((*samples, *found.shape[:-1]))


def half_log_det(factor: Tensor) -> Tensor:
    """log det(L) of Cholesky factors L, half that of L L^T."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse: of the reversed matrix P' = K K^T, so that P^-1 = K'^-T K'^-1 with K' reversed, upper triangular."""
    reverse = aten.ops.linalg_cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    eye = aten.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return aten.ops.linalg_solve_triangular(reverse, eye, upper=False)


class MultivariateNormal(Distribution):
    """Normally distributed vectors (D) with the mean `loc` and a covariance matrix, which is given in one of three ways.

    Args:
      loc: (..., D).
      covariance_matrix: (..., D, D), positive definite.
      precision_matrix: its inverse.
      scale_tril: its Cholesky factor, lower triangular with a positive diagonal: the cheapest way.

    Raises:
      ValueError: unless one of the three is given; for a loc without dimensions or matrices with less than two.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("MultivariateNormal: got a loc without dimensions, expected (..., D)")
        name, matrix = one_of_three(covariance_matrix, precision_matrix, scale_tril, ValueError)
        if matrix.dim() < 2:
            raise ValueError(
                f"MultivariateNormal: got {name} of shape {tuple(matrix.shape)}, expected (..., D, D)"
            )
        batch_shape = aten.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)

    def expand(
        self, batch_shape: Shape, _instance: MultivariateNormal | None = None
    ) -> MultivariateNormal:
        factor = self._unbroadcasted_scale_tril
        return self._expanded(
            MultivariateNormal, batch_shape, _instance, _unbroadcasted_scale_tril=factor
        )

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
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.square().sum(-1)
        return squares.expand(self._extended_shape())

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        distance = _batch_mahalanobis(factor, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - half_log_det(factor)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (constant + half_log_det(self._unbroadcasted_scale_tril)).expand(self._batch_shape)


def one_of_three(
    covariance_matrix: Tensor | None,
    precision_matrix: Tensor | None,
    scale_tril: Tensor | None,
    error: type[Exception],
) -> tuple[str, Tensor]:
    """The one that was given, with its name.

    Raises:
      error: unless exactly one was.
    """
    names = ("covariance_matrix", "precision_matrix", "scale_tril")
    pairs = zip(names, (covariance_matrix, precision_matrix, scale_tril), strict=True)
    given = [(name, value) for name, value in pairs if value is not None]
    if len(given) != 1:
        raise error(
            f"got {[name for name, _ in given]}, expected exactly one of {', '.join(names)}"
        )
    return given[0]


def scale_tril_of(name: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of the covariance, of a matrix that was given under this name."""
    if name == "scale_tril":
        return matrix
    return (
        aten.ops.linalg_cholesky(matrix)
        if name == "covariance_matrix"
        else _precision_to_scale_tril(matrix)
    )
