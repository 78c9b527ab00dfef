"""Kumaraswamy's distribution."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.transformed_distribution import TransformedDistribution
from argand.distributions.transforms import AffineTransform, PowerTransform
from argand.distributions.uniform import Uniform
from argand.distributions.utils import Shape, broadcast_all, euler_constant
from argand_c10 import Tensor

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """cdf 1 - (1 - x^a)^b on [0, 1], a = `concentration1`, b = `concentration0`.

    Source: P. Kumaraswamy, "A generalized probability density function for double-bounded random processes", 1980.

    Args:
      concentration1, concentration0: positive.
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zero, one = aten.zeros_like(self.concentration0), aten.ones_like(self.concentration0)
        transforms = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        base = Uniform(zero, one, validate_args=validate_args)
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Kumaraswamy | None = None) -> Kumaraswamy:
        return self._expanded_with_parameters(Kumaraswamy, batch_shape, _instance)

    def _moment(self, n: int) -> Tensor:
        """The mean of x^n: b B(1 + n / a, b)."""
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        """NaN for a concentration below 1."""
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return mode.masked_fill((b < 1) | (a < 1), float("nan"))

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self.mean.square()

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + euler_constant
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
