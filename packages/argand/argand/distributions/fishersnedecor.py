"""The F distribution."""

from __future__ import annotations

from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.gamma import Gamma
from argand.distributions.utils import Shape, broadcast_all
from argand_c10 import Size, Tensor, finfo

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """Fisher and Snedecor's F distribution: the quotient of chi-squared numbers, each divided by its degrees of freedom.

    Args:
      df1, df2: degrees of freedom of numerator and denominator, positive.
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(
        self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1, validate_args=False)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2, validate_args=False)
        super().__init__(self.df1.shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: FisherSnedecor | None = None) -> FisherSnedecor:
        return self._expanded(
            FisherSnedecor,
            batch_shape,
            _instance,
            _gamma1=self._gamma1.expand(batch_shape),
            _gamma2=self._gamma2.expand(batch_shape),
        )

    @property
    def mean(self) -> Tensor:
        """NaN up to 2 degrees of freedom of the denominator."""
        df2 = self.df2.masked_fill(self.df2 <= 2, float("nan"))
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        """NaN up to 2 degrees of freedom of the numerator."""
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, float("nan"))

    @property
    def variance(self) -> Tensor:
        """NaN up to 4 degrees of freedom of the denominator."""
        df1, df2 = self.df1, self.df2.masked_fill(self.df2 <= 4, float("nan"))
        return 2 * df2.square() * (df1 + df2 - 2) / (df1 * (df2 - 2).square() * (df2 - 4))

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        tiny = finfo(self.df1.dtype).tiny
        numerator = self._gamma1.rsample(sample_shape)
        denominator = self._gamma2.rsample(sample_shape).clamp(min=tiny)
        return (numerator / denominator).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        return (
            a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p() - log_beta
        )
