"""Gumbel's distribution."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.transformed_distribution import TransformedDistribution
from argand.distributions.transforms import AffineTransform, ExpTransform
from argand.distributions.uniform import Uniform
from argand.distributions.utils import Shape, broadcast_all, euler_constant
from argand_c10 import Tensor, finfo

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """Extremes: cdf exp(-exp(-(x - `loc`) / `scale`)).

    Args:
      loc: the mode.
      scale: positive.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = finfo(self.loc.dtype)
        low, high = aten.full_like(self.loc, limits.tiny), aten.full_like(self.loc, 1 - limits.eps)
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-aten.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=loc, scale=-self.scale),
        ]
        base = Uniform(low, high, validate_args=validate_args)
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Gumbel | None = None) -> Gumbel:
        return self._expanded_with_parameters(Gumbel, batch_shape, _instance)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
