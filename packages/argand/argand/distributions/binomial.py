"""Numbers of successes."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.utils import BinaryParameters, Shape, broadcast_all, check_one_of
from argand_autograd import no_grad
from argand_c10 import Size, Tensor

__all__ = ["Binomial"]


class Binomial(BinaryParameters, Distribution):
    """The number of successes in `total_count` trials of probability `probs`.

    Args:
      total_count: whole numbers >= 0.
      probs: the probability of a success, in [0, 1].
      logits: its log odds, in place of it.

    Raises:
      ValueError: unless one of `probs` and `logits` is given.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        check_one_of("Binomial", probs, logits)
        if probs is not None:
            count, self.probs = broadcast_all(total_count, probs)
        else:
            assert logits is not None
            count, self.logits = broadcast_all(total_count, logits)
        self.total_count: Tensor = count.to(self._param.dtype)
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Binomial | None = None) -> Binomial:
        return self._expanded(Binomial, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return aten.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        choices = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        # n log(1 + exp(logits)); abs has the slope 0 at 0, so that the derivative there is n / 2, as it should be.
        normalizer = n * (0.5 * (logits + logits.abs()) + (-logits.abs()).exp().log1p())
        return choices + value * logits - normalizer

    def entropy(self) -> Tensor:
        """Summed over the support.

        Raises:
          NotImplementedError: for total counts that differ.
        """
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = int(self.total_count.max())
        if self.total_count.min() != count:
            raise NotImplementedError(
                "Binomial: got total counts that differ, expected one for enumerate_support and entropy"
            )
        values = aten.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        return self._enumerated(values, expand)
