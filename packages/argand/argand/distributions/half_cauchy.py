"""The half-Cauchy distribution."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions._bases import Half
from argand.distributions.cauchy import Cauchy
from argand.distributions.utils import Shape
from argand_c10 import Tensor, as_tensor

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """|X| of X distributed as Cauchy(0, `scale`).

    Args:
      scale: its scale, positive.
    """

    _symmetric = Cauchy
    base_dist: Cauchy

    def expand(self, batch_shape: Shape, _instance: HalfCauchy | None = None) -> HalfCauchy:
        return self._expanded_with_parameters(HalfCauchy, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        """Infinite."""
        return aten.full_like(self.scale, float("inf"))

    @property
    def variance(self) -> Tensor:
        """Infinite."""
        return self.base_dist.variance

    def _log_density(self, value: Tensor) -> Tensor:
        return super()._log_density(
            as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        )
