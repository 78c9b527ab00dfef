"""One of several categories."""

from __future__ import annotations

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.utils import (
    Shape,
    check_one_of,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)
from argand_autograd import no_grad
from argand_c10 import Size, Tensor, finfo, int64

__all__ = ["Categorical"]


class Categorical(Distribution):
    """An index from 0 to K - 1, of probabilities in proportion to `probs` or exp(`logits`).

    Args:
      probs: weights (..., K), >= 0 and not all 0; the attribute has them divided by their sum.
      logits: their logarithms up to a constant, in place of them; the attribute has those of probabilities.

    Raises:
      ValueError: unless one of `probs` and `logits` is given, with at least one dimension.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        check_one_of("Categorical", probs, logits)
        given = probs if probs is not None else logits
        assert given is not None
        if given.dim() < 1:
            name = "probs" if probs is not None else "logits"
            raise ValueError(f"Categorical: got {name} without dimensions, expected (..., K)")
        if probs is not None:
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = self._param = given - given.logsumexp(-1, keepdim=True)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Categorical | None = None) -> Categorical:
        param = self._param.expand((*batch_shape, self._num_events))
        return self._expanded(
            Categorical, batch_shape, _instance, _param=param, _num_events=self._num_events
        )

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.shape

    @property
    def mean(self) -> Tensor:
        """NaN: categories are no numbers."""
        return self.probs.new_full(self._extended_shape(), float("nan"))

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        """NaN."""
        return self.mean

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        sample_shape = Size(sample_shape)
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = aten.multinomial(rows, sample_shape.numel(), True).T
            return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        index, logits = aten.broadcast_tensors(value.to(int64).unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)  # 0 * -inf is NaN
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = aten.arange(self._num_events, dtype=int64, device=self._param.device)
        return self._enumerated(values, expand)
