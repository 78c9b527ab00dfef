"""Dirichlet's distribution."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.exp_family import ExponentialFamily
from argand.distributions.utils import Shape
from argand_c10 import Size, Tensor

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Vectors (K) of numbers >= 0 with sum 1, of density proportional to the product of x_k^(c_k - 1).

    Samples have the gradient of implicit reparametrisation (M. Figurnov, S. Mohamed, A. Mnih 2018).

    Args:
      concentration: c (..., K), positive.

    Raises:
      ValueError: for a concentration without dimensions.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("Dirichlet: got a concentration without dimensions, expected (..., K)")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Dirichlet | None = None) -> Dirichlet:
        return self._expanded(Dirichlet, batch_shape, _instance)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return aten.ops._sample_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        c = self.concentration
        powers = aten.xlogy(c - 1.0, value).sum(-1)
        return powers + c.sum(-1).lgamma() - c.lgamma().sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        """Where all concentrations are below 1, the corner of the largest one; there the density is infinite."""
        above = (self.concentration - 1).clamp(min=0.0)
        inside = above / above.sum(-1, keepdim=True)
        corner = aten.one_hot(inside.argmax(-1), inside.shape[-1]).to(inside.dtype)
        at_corner = (self.concentration < 1).all(-1, keepdim=True)
        return aten.where(at_corner, corner, inside)

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        total = c.sum(-1, keepdim=True)
        return c * (total - c) / (total.square() * (total + 1))

    def entropy(self) -> Tensor:
        c = self.concentration
        total = c.sum(-1)
        log_beta = c.lgamma().sum(-1) - total.lgamma()
        return (
            log_beta - (c.shape[-1] - total) * total.digamma() - ((c - 1.0) * c.digamma()).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
