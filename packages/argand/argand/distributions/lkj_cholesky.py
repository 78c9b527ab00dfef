"""Correlation matrices."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.beta import Beta
from argand.distributions.distribution import Distribution
from argand.distributions.utils import Shape, broadcast_all
from argand_autograd import no_grad
from argand_c10 import Size, Tensor, finfo

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors (D, D) of correlation matrices M with density proportional to det(M)^(concentration - 1): uniform at 1.

    Source: D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based on vines and extended onion method", 2009, section 3.

    Args:
      dim: D, at least 2.
      concentration: positive; above 1 near the identity.

    Raises:
      ValueError: for a dim below 2.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(f"LKJCholesky: got dim={dim}, expected at least 2")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # Of row i the squared length below the diagonal: Beta(i / 2, concentration + (D - 1 - i) / 2); row 0 has none, and any will do.
        row = aten.arange(dim, dtype=self.concentration.dtype, device=self.concentration.device)
        row = (row - 1).clamp(min=0)
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(row + 0.5, marginal.unsqueeze(-1) - 0.5 * row, validate_args=False)
        super().__init__(self.concentration.shape, Size((dim, dim)), validate_args)

    def expand(self, batch_shape: Shape, _instance: LKJCholesky | None = None) -> LKJCholesky:
        beta = self._beta.expand((*batch_shape, self.dim))
        return self._expanded(LKJCholesky, batch_shape, _instance, dim=self.dim, _beta=beta)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        """By the onion method."""
        with no_grad():
            squared = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            direction = aten.randn(shape, dtype=squared.dtype, device=squared.device).tril(-1)
            length = direction.square().sum(-1, keepdim=True).sqrt()
            length = length.masked_fill(length == 0, 1.0)  # row 0
            below = squared.sqrt() * direction / length
            rest = 1 - below.square().sum(-1)
            return below + rest.clamp(min=finfo(below.dtype).tiny).sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        row = aten.arange(2, self.dim + 1, device=self.concentration.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        below = self.dim - 1
        alpha = self.concentration + 0.5 * below
        normalizer = (
            0.5 * below * math.log(math.pi)
            + aten.mvlgamma(alpha - 0.5, below)
            - below * alpha.lgamma()
        )
        return (power * diagonal.log()).sum(-1) - normalizer
