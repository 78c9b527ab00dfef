"""Cauchy's distribution."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions._bases import LocationScale
from argand.distributions.utils import Shape
from argand_c10 import Size, Tensor

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """Density 1 / (pi s (1 + ((x - loc) / s)^2)), s = `scale`: quotients of two normal numbers.

    Args:
      loc: the median.
      scale: half the distance of the quartiles, positive.
    """

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
