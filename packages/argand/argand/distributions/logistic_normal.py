"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from argand.distributions import constraints
from argand.distributions.normal import Normal
from argand.distributions.transformed_distribution import TransformedDistribution
from argand.distributions.transforms import StickBreakingTransform
from argand.distributions.utils import Shape
from argand_c10 import Tensor

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Points of the simplex (K + 1) by StickBreakingTransform from K independent normal numbers.

    Args:
      loc: their means (..., K).
      scale: their standard deviations, positive.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    base_dist: Any

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: LogisticNormal | None = None) -> LogisticNormal:
        return self._expanded_with_parameters(LogisticNormal, batch_shape, _instance)

    @property
    def loc(self) -> Tensor:
        """The means of the normal numbers."""
        return self.base_dist.base_dist.loc  # type: ignore[no-any-return]

    @property
    def scale(self) -> Tensor:
        """Their standard deviations."""
        return self.base_dist.base_dist.scale  # type: ignore[no-any-return]
