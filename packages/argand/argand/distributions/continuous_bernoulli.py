"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.exp_family import ExponentialFamily
from argand.distributions.utils import (
    BinaryParameters,
    Shape,
    binary_cross_entropy,
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
)
from argand_autograd import no_grad
from argand_c10 import Size, Tensor

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryParameters, ExponentialFamily):
    """Density C(p) p^x (1 - p)^(1 - x) on [0, 1], p = `probs`, which is no probability here.

    Source: G. Loaiza-Ganem, J. P. Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational autoencoders", NeurIPS 2019.

    Args:
      probs: p, in (0, 1); it is clamped to an epsilon from the ends.
      logits: its log odds, in place of it.
      lims: between these p is so near to 1/2 that Taylor's series replace formulas that cancel there.

    Raises:
      ValueError: unless one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._set_probs_or_logits(probs, logits)
        if probs is not None:
            # Of what is clamped nothing could be wrong any more.
            checks = self._validate_args if validate_args is None else validate_args
            if checks and not constraints.unit_interval.check(self.probs).all():
                raise ValueError(
                    "ContinuousBernoulli: got invalid values of the parameter probs, expected them in [0, 1]"
                )
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: ContinuousBernoulli | None = None
    ) -> ContinuousBernoulli:
        return self._expanded(ContinuousBernoulli, batch_shape, _instance, _lims=self._lims)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _is_stable(self) -> Tensor:
        """Where p is far enough from 1/2."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _stable_probs(self) -> Tensor:
        """p where it is far enough from 1/2, else the lower limit."""
        return aten.where(self._is_stable(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """log C(p) = log(2 artanh(1 - 2 p) / (1 - 2 p))."""
        p = self._stable_probs()
        exact = (((-p).log1p() - p.log()) / (1.0 - 2.0 * p)).log()
        x = (self.probs - 0.5).square()
        near = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return aten.where(self._is_stable(), exact, near)

    @property
    def mean(self) -> Tensor:
        p = self._stable_probs()
        exact = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        near = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.square()) * x
        return aten.where(self._is_stable(), exact, near)

    @property
    def variance(self) -> Tensor:
        p = self._stable_probs()
        exact = p * (p - 1.0) / (1.0 - 2.0 * p).square() + 1.0 / ((-p).log1p() - p.log()).square()
        x = (self.probs - 0.5).square()
        near = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return aten.where(self._is_stable(), exact, near)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(aten.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return self._cont_bern_log_norm() - binary_cross_entropy(logits, value)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._stable_probs()
        exact = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = aten.where(self._is_stable(), exact, value)
        return aten.where(value <= 0.0, 0.0, aten.where(value >= 1.0, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._stable_probs()
        exact = ((-p + value * (2.0 * p - 1.0)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return aten.where(self._is_stable(), exact, value)

    def entropy(self) -> Tensor:
        log_failure = (-self.probs).log1p()
        return (
            self.mean * (log_failure - self.probs.log()) - self._cont_bern_log_norm() - log_failure
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """log((exp(x) - 1) / x)."""
        is_stable = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        far = aten.where(is_stable, x, self._lims[0] - 0.5)
        near = 0.5 * x + x.square() / 24.0 - x.pow(4) / 2880.0
        return aten.where(is_stable, (far.expm1() / far).log(), near)
