"""The uniform distribution."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.utils import Shape, broadcast_all
from argand_c10 import Size, Tensor

__all__ = ["Uniform"]


class Uniform(Distribution):
    """Evenly distributed on [`low`, `high`).

    Args:
      low, high: the ends, low < high.
    """

    has_rsample = True

    def __init__(
        self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Uniform | None = None) -> Uniform:
        return self._expanded(Uniform, batch_shape, _instance)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        """NaN: all values are alike."""
        return aten.full_like(self.high, float("nan"))

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        noise = aten.rand(shape, dtype=self.low.dtype, device=self.low.device)
        return self.low + noise * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        is_inside = (value >= self.low) & (value < self.high)
        return aten.where(is_inside, -(self.high - self.low).log(), -float("inf"))

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
