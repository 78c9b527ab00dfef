"""The beta distribution."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.dirichlet import Dirichlet
from argand.distributions.exp_family import ExponentialFamily
from argand.distributions.utils import Shape, broadcast_all
from argand_c10 import Size, Tensor

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """Density x^(a - 1) (1 - x)^(b - 1) / B(a, b) on [0, 1], a = `concentration1`, b = `concentration0`: the first of Dirichlet's two parts.

    Args:
      concentration1, concentration0: positive.
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        both = aten.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=False)
        super().__init__(self._dirichlet.batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Beta | None = None) -> Beta:
        dirichlet = self._dirichlet.expand(batch_shape)
        return self._expanded(Beta, batch_shape, _instance, _dirichlet=dirichlet)

    @property
    def concentration1(self) -> Tensor:
        """a."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        """b."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        total = a + b
        return a * b / (total.square() * (total + 1))

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(aten.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma() + y.lgamma() - (x + y).lgamma()
