"""Cauchy's distribution."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.utils import Shape, broadcast_all
from argand_c10 import Size, Tensor

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """Density 1 / (pi s (1 + ((x - loc) / s)^2)), s = `scale`: quotients of two normal numbers.

    Args:
      loc: the median.
      scale: half the distance of the quartiles, positive.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Cauchy | None = None) -> Cauchy:
        return self._expanded(Cauchy, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        """NaN: it does not exist."""
        return aten.full_like(self.loc, float("nan"))

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Infinite."""
        return aten.full_like(self.loc, float("inf"))

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        noise = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - z.square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
