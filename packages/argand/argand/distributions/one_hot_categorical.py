"""One of several categories as a vector."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.categorical import Categorical
from argand.distributions.distribution import Distribution
from argand.distributions.utils import Shape
from argand_c10 import Size, Tensor

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """Vectors (K) of zeros and a 1 at the category that was drawn.

    Args:
      probs: weights (..., K) as of `Categorical`.
      logits: their logarithms, in place of them.

    Raises:
      ValueError: unless one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: OneHotCategorical | None = None
    ) -> OneHotCategorical:
        categorical = self._categorical.expand(batch_shape)
        return self._expanded(OneHotCategorical, batch_shape, _instance, _categorical=categorical)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self.probs.argmax(-1))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, index: Tensor) -> Tensor:
        return aten.one_hot(index, self._event_shape[0]).to(self._param.dtype)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = aten.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape((n, *(1,) * len(self._batch_shape), n))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same with samples that pass gradients on to the probabilities as if they were these.

    Source: Y. Bengio, N. Leonard, A. Courville, "Estimating or propagating gradients through stochastic neurons for conditional computation", 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
