"""Exponential families, whose entropy follows from their log normalizer."""

from __future__ import annotations

from typing import Any, cast

from argand.distributions.distribution import Distribution
from argand.distributions.utils import _sum_rightmost
from argand_autograd import enable_grad, grad
from argand_c10 import Tensor

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities exp(<t(x), theta> - F(theta) + k(x)) of natural parameters theta, sufficient statistics t, log normalizer F and carrier measure k.

    A subclass gives `_natural_params`, `_log_normalizer(*natural_params)` and `_mean_carrier_measure`, the mean of k(x).
    Source: F. Nielsen, R. Nock, "Entropies and cross-entropies of exponential families", ICIP 2010.
    """

    _mean_carrier_measure: Any = NotImplemented

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} does not give its natural parameters")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not give its log normalizer")

    def _normalizer_slopes(self) -> tuple[list[Tensor], Tensor, tuple[Tensor, ...]]:
        """Natural parameters, their log normalizer, and its derivatives by them: the means of the sufficient statistics."""
        with enable_grad():
            params = [p.detach().requires_grad_() for p in self._natural_params]
            normalizer = self._log_normalizer(*params)
            slopes = grad(normalizer.sum(), params, create_graph=True)
            return params, normalizer, cast("tuple[Tensor, ...]", slopes)

    def entropy(self) -> Tensor:
        """F(theta) - <theta, dF/dtheta> - E k(x)."""
        if self._mean_carrier_measure is NotImplemented:
            raise NotImplementedError(
                f"{type(self).__name__} does not give its mean carrier measure"
            )
        params, result, means = self._normalizer_slopes()
        for param, mean in zip(params, means, strict=True):
            result = result - _sum_rightmost(param * mean, param.dim() - len(self._batch_shape))
        entropy: Tensor = result - self._mean_carrier_measure
        return entropy
