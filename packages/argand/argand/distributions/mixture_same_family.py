"""Mixtures."""

from __future__ import annotations

from typing import Any

from argand.distributions import constraints
from argand.distributions.categorical import Categorical
from argand.distributions.distribution import Distribution
from argand.distributions.utils import Shape
from argand_autograd import no_grad
from argand_c10 import Size, Tensor

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of components of one family, whose last batch dimension counts the components.

        gmm = MixtureSameFamily(Categorical(torch.ones(5)), Normal(torch.randn(5), torch.rand(5)))

    Args:
      mixture_distribution: the weights, a Categorical over K components.
      component_distribution: a distribution of batch_shape (..., K).

    Raises:
      ValueError: for other types, numbers of components that differ, and batch shapes that do not fit.
    """

    arg_constraints: Any = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        mixture, component = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical) or not isinstance(component, Distribution):
            raise ValueError(
                f"MixtureSameFamily: got {type(mixture).__name__} and {type(component).__name__}, expected a Categorical and a Distribution"
            )
        batch_shape = component.batch_shape[:-1]
        for got, size in zip(reversed(mixture.batch_shape), reversed(batch_shape), strict=False):
            if got != 1 and size != 1 and got != size:
                raise ValueError(
                    f"MixtureSameFamily: got mixtures of batch_shape {tuple(mixture.batch_shape)} and components of {tuple(component.batch_shape)}, "
                    "expected the former to fit the latter without its last dimension"
                )
        count = mixture.logits.shape[-1]
        if count != component.batch_shape[-1]:
            raise ValueError(
                f"MixtureSameFamily: got weights for {count} components and {component.batch_shape[-1]} components"
            )
        self._mixture_distribution, self._component_distribution = mixture, component
        self._num_component = count
        super().__init__(batch_shape, component.event_shape, validate_args=validate_args)

    def expand(
        self, batch_shape: Shape, _instance: MixtureSameFamily | None = None
    ) -> MixtureSameFamily:
        component = self._component_distribution.expand((*batch_shape, self._num_component))
        return self._expanded(
            MixtureSameFamily,
            batch_shape,
            _instance,
            _mixture_distribution=self._mixture_distribution.expand(batch_shape),
            _component_distribution=component,
            _num_component=self._num_component,
        )

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The weights."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    @property
    def _component_dim(self) -> int:
        return -1 - len(self._event_shape)

    def _weights(self) -> Tensor:
        """The weights, broadcast to mean and variance of the components."""
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * len(self._event_shape))

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(self._component_dim)

    @property
    def variance(self) -> Tensor:
        """The mean of the components' variances and the variance of their means."""
        component, weights = self._component_distribution, self._weights()
        distance = component.mean - self.mean.unsqueeze(self._component_dim)
        return (weights * (component.variance + distance.square())).sum(self._component_dim)

    def cdf(self, x: Tensor) -> Tensor:
        below = self._component_distribution.cdf(x.unsqueeze(self._component_dim))
        return (below * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        of_components = self._component_distribution.log_prob(x.unsqueeze(self._component_dim))
        return (of_components + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        with no_grad():
            drawn = self._component_distribution.sample(sample_shape)
            which = self._mixture_distribution.sample(sample_shape)
            dim, event = drawn.dim() + self._component_dim, self._event_shape
            # A mixture of fewer batch dimensions than the components is drawn once for all of them.
            missing = dim - which.dim()
            lead = len(sample_shape)
            which = which.reshape((*which.shape[:lead], *(1,) * missing, *which.shape[lead:]))
            index = which.reshape(which.shape + (1,) * (1 + len(event)))
            index = index.expand((*drawn.shape[:dim], 1, *event))
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
