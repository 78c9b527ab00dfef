"""Distributions of transformed values."""

from __future__ import annotations

from typing import Any, TypeVar

from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.independent import Independent
from argand.distributions.transforms import ComposeTransform, Transform
from argand.distributions.utils import Shape, _sum_rightmost
from argand_autograd import no_grad
from argand_c10 import Size, Tensor

__all__ = ["TransformedDistribution"]

TransformedT = TypeVar("TransformedT", bound="TransformedDistribution")


class TransformedDistribution(Distribution):
    """The distribution of t_n(...t_1(x)) for x of a base distribution; the density follows from the determinants of the Jacobians.

        logistic = TransformedDistribution(Uniform(0, 1), [SigmoidTransform().inv, AffineTransform(loc, scale)])

    Args:
      base_distribution: that of x; it is expanded to the shape of the values, and dimensions that a transform mixes become part of its events.
      transforms: t_1...t_n, a list of transforms or one.

    Raises:
      ValueError: for what are no transforms, and for a base with too few dimensions.
    """

    arg_constraints: Any = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        self.transforms: list[Transform] = (
            [transforms] if isinstance(transforms, Transform) else transforms
        )
        if not isinstance(self.transforms, list) or not all(
            isinstance(t, Transform) for t in self.transforms
        ):
            raise ValueError(
                f"TransformedDistribution: got transforms={transforms!r}, expected a Transform or a list of them"
            )
        whole = ComposeTransform(self.transforms)
        base, base_dims = base_distribution, len(base_distribution.event_shape)
        shape, domain_dims = base.batch_shape + base.event_shape, whole.domain.event_dim
        if len(shape) < domain_dims:
            raise ValueError(
                f"TransformedDistribution: got a base distribution of shape {tuple(shape)}, expected at least {domain_dims} dimensions"
            )
        forward_shape = whole.forward_shape(shape)
        needed = whole.inverse_shape(forward_shape)
        if shape != needed:
            base = base.expand(needed[: len(needed) - base_dims])
        if domain_dims > base_dims:
            base = Independent(base, domain_dims - base_dims)
        self.base_dist: Any = base
        codomain_dims = whole.codomain.event_dim
        cut = len(forward_shape) - max(codomain_dims, base_dims + codomain_dims - domain_dims)
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expanded_with_parameters(
        self, cls: type[TransformedT], batch_shape: Shape, _instance: TransformedT | None
    ) -> TransformedT:
        """`expand` of a class cls that keeps univariate parameters of its own."""
        new: TransformedT = self._get_checked_instance(cls, _instance)
        for name in self.arg_constraints:
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(batch_shape))
        TransformedDistribution.expand(self, batch_shape, new)
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        last = self.transforms[-1].codomain
        further = len(self.event_shape) - last.event_dim
        return constraints.independent(last, further) if further > 0 else last

    @property
    def has_rsample(self) -> bool:
        return self.base_dist.has_rsample  # type: ignore[no-any-return]

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        return self._transformed(self.base_dist.rsample(sample_shape))

    def _transformed(self, value: Tensor) -> Tensor:
        for transform in self.transforms:
            value = transform(value)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        dims = len(self.event_shape)
        result: Any = 0.0
        for transform in reversed(self.transforms):
            before = transform.inv(value)
            dims += transform.domain.event_dim - transform.codomain.event_dim
            term = transform.log_abs_det_jacobian(before, value)
            result = result - _sum_rightmost(term, dims - transform.domain.event_dim)
            value = before
        base = self.base_dist.log_prob(value)
        return result + _sum_rightmost(base, dims - len(self.base_dist.event_shape))  # type: ignore[no-any-return]

    def _in_order(self, probability: Tensor) -> Tensor:
        """A probability of values below as one of x below, or the reverse: 1 - it where the transforms together decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int):
            return probability if sign == 1 else 1 - probability
        return sign * (probability - 0.5) + 0.5  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._in_order(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._in_order(value)))
