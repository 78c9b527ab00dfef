"""The generalized Pareto distribution."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.utils import Shape, broadcast_all
from argand_c10 import Size, Tensor

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What exceeds a high threshold: 1 - cdf = (1 + c z)^(-1 / c), z = (x - `loc`) / `scale`, c = `concentration`; exp(-z) where c is 0.

    Source: J. Pickands, "Statistical inference using extreme order statistics", 1975.

    Args:
      loc: the threshold, where the support begins.
      scale: positive.
      concentration: c; below 0 the support ends at loc - scale / c.
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: GeneralizedPareto | None = None
    ) -> GeneralizedPareto:
        return self._expanded(GeneralizedPareto, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, aten.where(self.concentration < 0, end, float("inf")))

    def _safe_concentration(self) -> tuple[Tensor, Tensor]:
        """Where c is 0, up to 1e-8, and c with 1 there."""
        is_zero = self.concentration.abs() <= 1e-8
        return is_zero, self.concentration.masked_fill(is_zero, 1.0)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(aten.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        is_zero, c = self._safe_concentration()
        power = 1 / c + 1
        decay = aten.where(power == 0, 0.0, power * (c * z).log1p())  # uniform at c = -1
        return -self.scale.log() - aten.where(is_zero, z, decay)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log(1 - cdf(value))."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        is_zero, c = self._safe_concentration()
        return aten.where(is_zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """log(cdf(value))."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        is_zero, c = self._safe_concentration()
        log_survival = (-value).log1p()
        z = aten.where(is_zero, -log_survival, (-c * log_survival).expm1() / c)
        return self.loc + self.scale * z

    @property
    def mean(self) -> Tensor:
        """NaN from c = 1 on."""
        c = self.concentration.masked_fill(self.concentration >= 1, float("nan"))
        return self.loc + self.scale / (1 - c)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """NaN from c = 1/2 on."""
        c = self.concentration.masked_fill(self.concentration >= 0.5, float("nan"))
        return self.scale.square() / ((1 - c).square() * (1 - 2 * c))

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
