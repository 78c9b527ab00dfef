"""The log-normal distribution."""

from __future__ import annotations

from argand.distributions import constraints
from argand.distributions.normal import Normal
from argand.distributions.transformed_distribution import TransformedDistribution
from argand.distributions.transforms import ExpTransform
from argand.distributions.utils import Shape
from argand_c10 import Tensor

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """exp(X) of X distributed as Normal(`loc`, `scale`).

    Args:
      loc: the mean of the logarithm.
      scale: the standard deviation of the logarithm, positive.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    base_dist: Normal

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: LogNormal | None = None) -> LogNormal:
        return self._expanded_with_parameters(LogNormal, batch_shape, _instance)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    @property
    def variance(self) -> Tensor:
        square = self.scale.square()
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
