"""Successes before a number of failures."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.gamma import Gamma
from argand.distributions.utils import (
    BinaryParameters,
    Shape,
    broadcast_all,
    check_one_of,
    lazy_property,
)
from argand_autograd import no_grad
from argand_c10 import Size, Tensor

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryParameters, Distribution):
    """The number of successes of probability `probs` before `total_count` failures: a Poisson number of a gamma-distributed rate.

    Args:
      total_count: the number of failures, >= 0, whole or not.
      probs: the probability of a success, in [0, 1).
      logits: its log odds, in place of it.

    Raises:
      ValueError: unless one of `probs` and `logits` is given.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        check_one_of("NegativeBinomial", probs, logits)
        if probs is not None:
            count, self.probs = broadcast_all(total_count, probs)
        else:
            assert logits is not None
            count, self.logits = broadcast_all(total_count, logits)
        self.total_count: Tensor = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: NegativeBinomial | None = None
    ) -> NegativeBinomial:
        return self._expanded(NegativeBinomial, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    @lazy_property
    def _gamma(self) -> Gamma:
        """Of the rates; without a check, since a total count of 0 has none."""
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        with no_grad():
            return aten.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        powers = n * aten.log_sigmoid(-self.logits) + value * aten.log_sigmoid(self.logits)
        choices = (n + value).lgamma() - (1.0 + value).lgamma() - n.lgamma()
        return powers + choices.masked_fill(n + value == 0.0, 0.0)
