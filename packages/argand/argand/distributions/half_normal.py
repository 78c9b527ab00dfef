"""The half-normal distribution."""

from __future__ import annotations

import math

from argand.distributions._bases import Half
from argand.distributions.normal import Normal
from argand.distributions.utils import Shape
from argand_c10 import Tensor

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """|X| of X distributed as Normal(0, `scale`).

    Args:
      scale: its standard deviation, positive.
    """

    _symmetric = Normal
    base_dist: Normal

    def expand(self, batch_shape: Shape, _instance: HalfNormal | None = None) -> HalfNormal:
        return self._expanded_with_parameters(HalfNormal, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)
