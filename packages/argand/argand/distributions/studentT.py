"""Student's t distribution."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.chi2 import Chi2
from argand.distributions.distribution import Distribution
from argand.distributions.utils import Shape, _standard_normal, broadcast_all
from argand_c10 import Size, Tensor

__all__ = ["StudentT"]


class StudentT(Distribution):
    """loc + scale * X / sqrt(Y / df) of a standard normal X and a chi-squared Y of `df` degrees of freedom.

    Args:
      df: degrees of freedom, positive.
      loc: the mode.
      scale: positive.
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=False)
        super().__init__(self.df.shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: StudentT | None = None) -> StudentT:
        chi2 = self._chi2.expand(batch_shape)
        return self._expanded(StudentT, batch_shape, _instance, _chi2=chi2)

    @property
    def mean(self) -> Tensor:
        """NaN up to df 1."""
        return self.loc.masked_fill(self.df <= 1, float("nan"))

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        """Infinite from df 1 to 2, NaN below."""
        df = self.df.masked_fill(self.df <= 2, float("inf"))
        finite = self.scale.square() * (self.df / (df - 2))
        result = aten.where(self.df > 2, finite, float("inf"))
        return result.masked_fill(self.df <= 1, float("nan"))

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, self.df.dtype, self.df.device)
        return self.loc + self.scale * noise * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    def _log_beta(self) -> Tensor:
        """log B(1 / 2, df / 2)."""
        return 0.5 * math.log(math.pi) + (0.5 * self.df).lgamma() - (0.5 * (self.df + 1)).lgamma()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        tail = 0.5 * (self.df + 1) * (y.square() / self.df).log1p()
        return -tail - self.scale.log() - 0.5 * self.df.log() - self._log_beta()

    def entropy(self) -> Tensor:
        half = 0.5 * (self.df + 1)
        slopes = half * (half.digamma() - (0.5 * self.df).digamma())
        return self.scale.log() + slopes + 0.5 * self.df.log() + self._log_beta()
