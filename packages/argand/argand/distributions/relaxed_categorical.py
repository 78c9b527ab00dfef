"""Categories with gradients."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions._bases import Relaxed
from argand.distributions.categorical import Categorical
from argand.distributions.distribution import Distribution
from argand.distributions.transforms import ExpTransform
from argand.distributions.utils import Shape, broadcast_all, clamp_probs
from argand_c10 import Size, Tensor

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithms of RelaxedOneHotCategorical.

    Source: C. J. Maddison, A. Mnih, Y. W. Teh, "The concrete distribution: a continuous relaxation of discrete random variables", ICLR 2017.

    Args:
      temperature: positive.
      probs: weights (..., K) as of `Categorical`.
      logits: their logarithms, in place of them.

    Raises:
      ValueError: unless one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # their exponentials have the sum 1
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: ExpRelaxedCategorical | None = None
    ) -> ExpRelaxedCategorical:
        return self._expanded(
            ExpRelaxedCategorical,
            batch_shape,
            _instance,
            temperature=self.temperature,
            _categorical=self._categorical.expand(batch_shape),
        )

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape, logits = self._extended_shape(sample_shape), self.logits
        noise = clamp_probs(aten.rand(shape, dtype=logits.dtype, device=logits.device))
        scores = (logits - (-noise.log()).log()) / self.temperature
        return scores.log_softmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        k = self._event_shape[0]
        log_scale = math.lgamma(k) + (k - 1) * self.temperature.log()
        return (logits - value * self.temperature).log_softmax(-1).sum(-1) + log_scale


class RelaxedOneHotCategorical(Relaxed):
    """Points of the simplex (K), near to those of OneHotCategorical for a low `temperature`, whose samples have gradients: Gumbel-softmax.

    Source: Maddison et al. as above; E. Jang, S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", ICLR 2017.

    Args:
      temperature: positive.
      probs: weights (..., K) as of `Categorical`.
      logits: their logarithms, in place of them.

    Raises:
      ValueError: unless one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    base_dist: ExpRelaxedCategorical

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: RelaxedOneHotCategorical | None = None
    ) -> RelaxedOneHotCategorical:
        return self._expanded_with_parameters(RelaxedOneHotCategorical, batch_shape, _instance)
