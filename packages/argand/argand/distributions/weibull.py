"""Weibull's distribution."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.exponential import Exponential
from argand.distributions.transformed_distribution import TransformedDistribution
from argand.distributions.transforms import AffineTransform, PowerTransform
from argand.distributions.utils import Shape, broadcast_all, euler_constant
from argand_c10 import Tensor

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """cdf 1 - exp(-(x / `scale`)^`concentration`).

    Args:
      scale: positive.
      concentration: the shape, positive.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(
        self,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        transforms = [
            PowerTransform(self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        base = Exponential(aten.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Weibull | None = None) -> Weibull:
        new = self._expanded_with_parameters(Weibull, batch_shape, _instance)
        new.concentration_reciprocal = self.concentration_reciprocal.expand(batch_shape)
        return new

    @property
    def mean(self) -> Tensor:
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self) -> Tensor:
        c = self.concentration
        return self.scale * ((c - 1) / c) ** c.reciprocal()

    @property
    def variance(self) -> Tensor:
        inverse = self.concentration_reciprocal
        second, first = (1 + 2 * inverse).lgamma().exp(), (2 * (1 + inverse).lgamma()).exp()
        return self.scale.square() * (second - first)

    def entropy(self) -> Tensor:
        inverse = self.concentration_reciprocal
        return euler_constant * (1 - inverse) + (self.scale * inverse).log() + 1
