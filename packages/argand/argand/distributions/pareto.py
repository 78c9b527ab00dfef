"""Pareto's distribution."""

from __future__ import annotations

from typing import Any

from argand.distributions import constraints
from argand.distributions.exponential import Exponential
from argand.distributions.transformed_distribution import TransformedDistribution
from argand.distributions.transforms import AffineTransform, ExpTransform
from argand.distributions.utils import Shape, broadcast_all
from argand_c10 import Tensor

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Density a s^a / x^(a + 1) from s on, s = `scale`, a = `alpha`.

    Args:
      scale: s, where the support begins, positive.
      alpha: a, the power of the tail, positive.
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(
        self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None
    ) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Pareto | None = None) -> Pareto:
        return self._expanded_with_parameters(Pareto, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        """Infinite up to alpha 1."""
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        """Infinite up to alpha 2."""
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()
