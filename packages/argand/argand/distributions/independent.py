"""Batches of distributions as one."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.utils import Shape, _sum_rightmost
from argand_c10 import Size, Tensor

__all__ = ["Independent"]

D = TypeVar("D", bound=Distribution)


class Independent(Distribution, Generic[D]):
    """The last batch dimensions of a distribution as dimensions of its events, so that `log_prob` sums over them.

    Args:
      base_distribution: the distribution.
      reinterpreted_batch_ndims: the number of dimensions.

    Raises:
      ValueError: where it has fewer batch dimensions.
    """

    arg_constraints: Any = {}
    base_dist: D

    def __init__(
        self,
        base_distribution: D,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        cut = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        if cut < 0:
            raise ValueError(
                f"Independent: got reinterpreted_batch_ndims={reinterpreted_batch_ndims}, expected at most {len(base_distribution.batch_shape)}, the batch dimensions"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        ndims = self.reinterpreted_batch_ndims
        base = self.base_dist.expand(Size(batch_shape) + self.event_shape[:ndims])
        return self._expanded(
            Independent, batch_shape, _instance, base_dist=base, reinterpreted_batch_ndims=ndims
        )

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample  # type: ignore[no-any-return]

    @property
    def has_enumerate_support(self) -> bool:
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        base = self.base_dist.support
        ndims = self.reinterpreted_batch_ndims
        return constraints.independent(base, ndims) if ndims else base

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError(
                "Independent: got dimensions of events, expected none: products of supports are not enumerated"
            )
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
