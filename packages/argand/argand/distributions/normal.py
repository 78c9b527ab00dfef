"""The normal distribution."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions._bases import LocationScale
from argand.distributions.exp_family import ExponentialFamily
from argand.distributions.utils import HALF_LOG_2PI, Shape, _standard_normal
from argand_autograd import no_grad
from argand_c10 import Size, Tensor

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """Density exp(-(x - `loc`)^2 / (2 `scale`^2)) / (`scale` sqrt(2 pi)).

    Args:
      loc: the mean.
      scale: the standard deviation, positive.
    """

    _mean_carrier_measure = 0

    def expand(self, batch_shape: Shape, _instance: Normal | None = None) -> Normal:
        return self._expanded(Normal, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return aten.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.loc + _standard_normal(shape, self.loc.dtype, self.loc.device) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (
            -(value - self.loc).square() / (2 * self.scale.square())
            - self.scale.log()
            - HALF_LOG_2PI
        )

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 0.5 * (1 + ((value - self.loc) / self.scale / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + HALF_LOG_2PI + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale.square(), -0.5 / self.scale.square()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()
