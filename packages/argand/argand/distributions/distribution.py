"""The base of all distributions."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from argand.distributions import constraints
from argand.distributions.utils import Shape, lazy_property
from argand_autograd import no_grad
from argand_c10 import Size, Tensor

__all__ = ["Distribution"]

DistributionT = TypeVar("DistributionT", bound="Distribution")


class Distribution:
    """A family of probability distributions with parameters of one or more shapes.

    A sample has the shape sample_shape + batch_shape + event_shape: `batch_shape` counts distributions with parameters of their own, `event_shape` is that
    of one value of one of them. Methods that score a value take any shape that can be broadcast to this and give sample_shape + batch_shape.

    Args:
      batch_shape, event_shape: as above.
      validate_args: whether parameters are checked now and values when they are scored, which costs time; None is the default that
        `set_default_validate_args` sets.

    Raises:
      ValueError: for parameters outside of their `arg_constraints`.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    _kl_name = ""  # in kl_divergence's registry

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions made from now on check their arguments; at first they do, except under `python -O`.

        Raises:
          ValueError: for what is not a bool.
        """
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: got {value!r}, expected a bool")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Shape = Size(),  # noqa: B008 (immutable)
        event_shape: Shape = Size(),  # noqa: B008
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        name = type(self).__name__
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{name}: has no arg_constraints, so that arguments cannot be checked; define them (`arg_constraints = {{}}`) or give validate_args=False",
                stacklevel=4,
            )
            return
        for param, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if param not in self.__dict__ and isinstance(
                getattr(type(self), param, None), lazy_property
            ):
                continue  # not given: it comes of one that is checked
            value = getattr(self, param)
            if not constraint.check(value).all():
                raise ValueError(
                    f"{name}: got invalid values of the parameter {param} ({type(value).__name__} of shape {tuple(value.shape)}) of {self!r}, "
                    f"expected it to satisfy the constraint {constraint!r}:\n{value}"
                )

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        """The distribution with its batch dimensions expanded to `batch_shape`, on views of the same parameters, which are not checked again.

        Args:
          _instance: an object to fill, for subclasses that expand more than their base.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement expand")

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """A bare object of this type, of which cls.expand can set all that cls.__init__ would have set."""
        if _instance is not None:
            return _instance
        own = type(self)
        if own.__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"{own.__name__}.expand: got a subclass of {cls.__name__} with an __init__ of its own, expected it to have an expand of its own as well"
            )
        return own.__new__(own)

    def _expanded(
        self,
        cls: type[DistributionT],
        batch_shape: Shape,
        _instance: DistributionT | None,
        **others: Any,
    ) -> DistributionT:
        """`expand` of a class cls whose state is its parameters, those of `arg_constraints` that are set, and `others`."""
        new: DistributionT = self._get_checked_instance(cls, _instance)
        batch_shape = Size(batch_shape)
        for name, constraint in self.arg_constraints.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                event = value.shape[value.dim() - constraint.event_dim :]
                setattr(new, name, value.expand(batch_shape + event))
        for name, value in others.items():
            setattr(new, name, value)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self) -> Size:
        """The shape of the distributions that differ in parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one value of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The regions of the parameters that are tensors, by name."""
        raise NotImplementedError(f"{type(self).__name__} does not define arg_constraints")

    @property
    def support(self) -> Any:
        """The region of the values."""
        raise NotImplementedError(f"{type(self).__name__} does not define support")

    @property
    def mean(self) -> Tensor:
        """The mean, batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__} does not implement mean")

    @property
    def mode(self) -> Tensor:
        """A value where the density or mass is highest, batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each element, batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__} does not implement variance")

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        """Values of shape sample_shape + batch_shape + event_shape, without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        """The same as functions of the parameters and of noise that is free of them, so that they have gradients (where `has_rsample`)."""
        raise NotImplementedError(f"{type(self).__name__} does not implement rsample")

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`, by its former name."""
        warnings.warn("sample_n(n): is deprecated, use sample((n,))", FutureWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or mass at `value`.

        Raises:
          ValueError: with `validate_args`, for values outside of the support or of a shape that does not fit.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values up to `value`."""
        raise NotImplementedError(f"{type(self).__name__} does not implement cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`: the value up to which lies the probability `value`."""
        raise NotImplementedError(f"{type(self).__name__} does not implement icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution along a new first dimension: (count,) + batch_shape + event_shape.

        Args:
          expand: whether batch dimensions are expanded, or of size 1.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement enumerate_support")

    def entropy(self) -> Tensor:
        """The entropy in nats, batch_shape."""
        raise NotImplementedError(f"{type(self).__name__} does not implement entropy")

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Shape = Size()) -> Size:  # noqa: B008
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """`enumerate_support` of a univariate distribution with these values (n)."""
        values = values.reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _validate_sample(self, value: Any) -> None:
        """Raise ValueError for a value of a wrong type or shape, or outside of the support."""
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ValueError(
                f"{name}: got a value of type {type(value).__name__}, expected a Tensor"
            )
        shape, expected = value.shape, Size(self._batch_shape) + self._event_shape
        if shape[len(shape) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(
                f"{name}: got a value of shape {tuple(shape)}, expected its last sizes to be event_shape {tuple(self._event_shape)}"
            )
        for got, size in zip(reversed(shape), reversed(expected), strict=False):
            if got != 1 and size != 1 and got != size:
                raise ValueError(
                    f"{name}: got a value of shape {tuple(shape)}, expected one that can be broadcast with batch_shape + event_shape {tuple(expected)}"
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{name}: has no support, so that values cannot be checked; define it or give validate_args=False",
                stacklevel=3,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"{name}: got values ({type(value).__name__} of shape {tuple(shape)}) outside of the support {support!r} of {self!r}:\n{value}"
            )

    def __repr__(self) -> str:
        parts = []
        for name in self.arg_constraints:
            value = self.__dict__.get(name)
            if value is not None:
                parts.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(parts)})"
