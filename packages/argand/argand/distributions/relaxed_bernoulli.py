"""Bernoulli trials with gradients."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions._bases import Relaxed
from argand.distributions.distribution import Distribution
from argand.distributions.transforms import SigmoidTransform
from argand.distributions.utils import BinaryParameters, Shape, broadcast_all, probs_to_logits
from argand_c10 import Size, Tensor

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(BinaryParameters, Distribution):
    """The log odds of RelaxedBernoulli.

    Source: C. J. Maddison, A. Mnih, Y. W. Teh, "The concrete distribution: a continuous relaxation of discrete random variables", ICLR 2017.

    Args:
      temperature: positive.
      probs: the probability of 1, in (0, 1).
      logits: its log odds, in place of it.

    Raises:
      ValueError: unless one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set_probs_or_logits(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: LogitRelaxedBernoulli | None = None
    ) -> LogitRelaxedBernoulli:
        return self._expanded(
            LogitRelaxedBernoulli, batch_shape, _instance, temperature=self.temperature
        )

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        noise = aten.rand(shape, dtype=self._param.dtype, device=self._param.device)
        logits = probs_to_logits(self.probs, is_binary=True)
        return (probs_to_logits(noise, is_binary=True) + logits) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        distance = logits - value * self.temperature
        return self.temperature.log() + distance - 2 * aten.softplus(distance)


class RelaxedBernoulli(Relaxed):
    """Numbers of (0, 1), near to those of Bernoulli for a low `temperature`, whose samples have gradients.

    Source: Maddison et al. as above; E. Jang, S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", ICLR 2017.

    Args:
      temperature: positive.
      probs: the probability of 1, in (0, 1).
      logits: its log odds, in place of it.

    Raises:
      ValueError: unless one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    base_dist: LogitRelaxedBernoulli

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: RelaxedBernoulli | None = None
    ) -> RelaxedBernoulli:
        return self._expanded_with_parameters(RelaxedBernoulli, batch_shape, _instance)
