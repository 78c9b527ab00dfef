"""Laplace's distribution."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions._bases import LocationScale
from argand.distributions.utils import Shape
from argand_c10 import Size, Tensor, finfo

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """Density exp(-|x - `loc`| / `scale`) / (2 `scale`).

    Args:
      loc: the mean.
      scale: the mean absolute deviation, positive.
    """

    def expand(self, batch_shape: Shape, _instance: Laplace | None = None) -> Laplace:
        return self._expanded(Laplace, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape, limits = self._extended_shape(sample_shape), finfo(self.loc.dtype)
        # From -1 (without it: its logarithm is infinite) to 1: twice the distance from the median in probability.
        side = aten.rand(shape, dtype=self.loc.dtype, device=self.loc.device)
        side = side * (2 - limits.eps) - (1 - limits.eps)
        return self.loc - self.scale * side.sign() * (-side.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        x = value - self.loc
        return 0.5 - 0.5 * x.sign() * (-x.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        x = value - 0.5
        return self.loc - self.scale * x.sign() * (-2 * x.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
