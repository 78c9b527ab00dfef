"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from argand.distributions import constraints
from argand.distributions.gamma import Gamma
from argand.distributions.utils import Shape, broadcast_all
from argand_c10 import Tensor

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of the squares of `df` independent standard normal numbers: Gamma(df / 2, 1 / 2).

    Args:
      df: degrees of freedom, positive.
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        (given,) = broadcast_all(df)
        super().__init__(0.5 * given, 0.5, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Chi2:
        known: Chi2 | None = _instance
        parameters = {
            "concentration": self.concentration.expand(batch_shape),
            "rate": self.rate.expand(batch_shape),
        }
        return self._expanded(Chi2, batch_shape, known, **parameters)

    @property
    def df(self) -> Tensor:
        """Degrees of freedom."""
        return self.concentration * 2
