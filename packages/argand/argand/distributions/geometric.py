"""Failures before the first success."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.utils import BinaryParameters, Shape, binary_cross_entropy, broadcast_all
from argand_autograd import no_grad
from argand_c10 import Size, Tensor, finfo

__all__ = ["Geometric"]


class Geometric(BinaryParameters, Distribution):
    """The number of failures before the first success, of mass (1 - p)^k p, p = `probs`; `Tensor.geometric_` counts the success as well.

    Args:
      probs: the probability of a success, in (0, 1].
      logits: its log odds, in place of it.

    Raises:
      ValueError: unless one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_probs_or_logits(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(
                f"Geometric: got probs with zeros in {self!r}, expected them positive:\n{self.probs}"
            )

    def expand(self, batch_shape: Shape, _instance: Geometric | None = None) -> Geometric:
        return self._expanded(Geometric, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return aten.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape, probs = self._extended_shape(sample_shape), self.probs
        with no_grad():
            noise = aten.rand(shape, dtype=probs.dtype, device=probs.device)
            return (noise.clamp(min=finfo(probs.dtype).tiny).log() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        # 0 * log(0) is 0 here.
        failure = probs.masked_fill((probs == 1) & (value == 0), 0.0)
        return value * (-failure).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy(self.logits, self.probs) / self.probs
