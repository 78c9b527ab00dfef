"""What several distributions have in common."""

from __future__ import annotations

import math
from typing import Protocol

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.transformed_distribution import TransformedDistribution
from argand.distributions.transforms import AbsTransform
from argand.distributions.utils import broadcast_all
from argand_c10 import Tensor

__all__ = ["Half", "LocationScale", "Relaxed"]


class LocationScale(Distribution):
    """Of real numbers: moved by `loc`, stretched by `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)


class Half(TransformedDistribution):
    """|X| of X distributed as `base_dist`, whose density falls from 0 to both sides alike."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _symmetric: type[LocationScale]
    base_dist: LocationScale

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None) -> None:
        base = self._symmetric(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """That of the distribution of both signs."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return aten.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._log_density(value)

    def _log_density(self, value: Tensor) -> Tensor:
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


class _Tempered(Protocol):
    temperature: Tensor

    @property
    def logits(self) -> Tensor: ...
    @property
    def probs(self) -> Tensor: ...


class Relaxed(TransformedDistribution):
    """Choices with gradients, by a transform of `base_dist`, which has their parameters."""

    has_rsample = True
    base_dist: _Tempered

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log odds of 1, or the logarithms of the categories' probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1, or those of the categories."""
        return self.base_dist.probs
