"""Numbers of occurrences."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.binomial import Binomial
from argand.distributions.categorical import Categorical
from argand.distributions.distribution import Distribution
from argand.distributions.utils import Shape, broadcast_all
from argand_autograd import no_grad
from argand_c10 import Size, Tensor

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each of K categories occurs in `total_count` draws.

    Args:
      total_count: the number of draws, an int.
      probs: weights (..., K) as of `Categorical`.
      logits: their logarithms, in place of them.

    Raises:
      NotImplementedError: for total counts that are no int.
      ValueError: unless one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"Multinomial: got a total_count of type {type(total_count).__name__}, expected an int for all batches"
            )
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Multinomial | None = None) -> Multinomial:
        return self._expanded(
            Multinomial,
            batch_shape,
            _instance,
            total_count=self.total_count,
            _categorical=self._categorical.expand(batch_shape),
        )

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        sample_shape = Size(sample_shape)
        with no_grad():
            drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
            counts = self.probs.new_zeros(self._extended_shape(sample_shape))
            return counts.scatter_add(-1, drawn, aten.ones_like(drawn, dtype=counts.dtype))

    def entropy(self) -> Tensor:
        n = self.total_count
        one = Binomial(n, probs=self.probs, validate_args=False)  # the count of one category
        counts = one.enumerate_support(expand=False)[1:]
        repeats = (one.log_prob(counts).exp() * (counts + 1).lgamma()).sum(0).sum(-1)
        factorial = self.probs.new_tensor(n + 1.0).lgamma()
        return n * self._categorical.entropy() - factorial + repeats

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        # 0 * -inf is 0 here.
        logits = logits.masked_fill((value == 0) & (logits == -float("inf")), 0.0)
        arrangements = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return arrangements + (logits * value).sum(-1)
