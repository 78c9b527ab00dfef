"""The inverse gamma distribution."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.gamma import Gamma
from argand.distributions.transformed_distribution import TransformedDistribution
from argand.distributions.transforms import PowerTransform
from argand.distributions.utils import Shape
from argand_c10 import Tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / X of X distributed as Gamma(`concentration`, `rate`).

    Args:
      concentration: the shape, positive.
      rate: positive; it is the scale of 1 / X.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Gamma

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        transform = PowerTransform(-base.rate.new_ones(()))
        super().__init__(base, transform, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: InverseGamma | None = None) -> InverseGamma:
        return self._expanded_with_parameters(InverseGamma, batch_shape, _instance)

    @property
    def concentration(self) -> Tensor:
        """The shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The rate of X."""
        return self.base_dist.rate

    @property
    def mean(self) -> Tensor:
        """Infinite up to a concentration of 1."""
        c = self.concentration
        return aten.where(c > 1, self.rate / (c - 1), float("inf"))

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Tensor:
        """Infinite up to a concentration of 2."""
        c = self.concentration
        return aten.where(c > 2, self.rate.square() / ((c - 1).square() * (c - 2)), float("inf"))

    def entropy(self) -> Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()
