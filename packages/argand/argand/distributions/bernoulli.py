"""Bernoulli trials."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.exp_family import ExponentialFamily
from argand.distributions.utils import BinaryParameters, Shape, binary_cross_entropy, broadcast_all
from argand_autograd import no_grad
from argand_c10 import Size, Tensor

__all__ = ["Bernoulli"]


class Bernoulli(BinaryParameters, ExponentialFamily):
    """1 with probability `probs`, else 0.

    Args:
      probs: the probability of 1, in [0, 1].
      logits: its log odds, in place of it.

    Raises:
      ValueError: unless one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_probs_or_logits(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Bernoulli | None = None) -> Bernoulli:
        return self._expanded(Bernoulli, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The likelier value, NaN where both are equally likely."""
        likelier = (self.probs >= 0.5).to(self.probs.dtype)
        return likelier.masked_fill(self.probs == 0.5, float("nan"))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        with no_grad():
            return aten.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy(logits, value)

    def entropy(self) -> Tensor:
        return binary_cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = aten.arange(2, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.probs.logit(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.exp().log1p()
