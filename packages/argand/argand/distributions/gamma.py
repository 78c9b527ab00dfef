"""The gamma distribution."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.exp_family import ExponentialFamily
from argand.distributions.utils import Shape, broadcast_all
from argand_c10 import Size, Tensor, as_tensor, finfo

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Density r^c x^(c - 1) exp(-r x) / Gamma(c), c = `concentration`, r = `rate`.

    Samples have the gradient of implicit reparametrisation (M. Figurnov, S. Mohamed, A. Mnih 2018).

    Args:
      concentration: the shape c, positive.
      rate: r, 1 over the scale, positive.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Gamma | None = None) -> Gamma:
        return self._expanded(Gamma, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        value = aten.ops._standard_gamma(self.concentration.expand(shape)) / self.rate
        # Not 0, whose logarithm is of no use; the derivative is that of the quotient all the same.
        return value + (finfo(value.dtype).tiny - value).clamp(min=0).detach()

    def log_prob(self, value: Tensor) -> Tensor:
        value = as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        c, rate = self.concentration, self.rate
        return aten.xlogy(c, rate) + aten.xlogy(c - 1, value) - rate * value - c.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return aten.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        c = self.concentration
        return c - self.rate.log() + c.lgamma() + (1.0 - c) * c.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return (x + 1).lgamma() - (x + 1) * (-y).log()
