"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.cauchy import Cauchy
from argand.distributions.transformed_distribution import TransformedDistribution
from argand.distributions.transforms import AbsTransform
from argand.distributions.utils import Shape
from argand_c10 import Tensor, as_tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """|X| of X distributed as Cauchy(0, `scale`).

    Args:
      scale: its scale, positive.
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Cauchy

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: HalfCauchy | None = None) -> HalfCauchy:
        return self._expanded_with_parameters(HalfCauchy, batch_shape, _instance)

    @property
    def scale(self) -> Tensor:
        """That of the distribution of both signs."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        """Infinite."""
        return aten.full_like(self.scale, float("inf"))

    @property
    def mode(self) -> Tensor:
        return aten.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        """Infinite."""
        return self.base_dist.variance

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        density = self.base_dist.log_prob(value) + math.log(2)
        return aten.where(value >= 0, density, -float("inf"))

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
