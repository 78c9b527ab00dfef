"""Regions of values, for parameters and supports of distributions: `constraint.check(value)` says which events of `value` lie in it.

Ready ones are the module's lower-case names: `real`, `positive`, `simplex`, `interval(0.0, 2.0)`, `independent(positive, 1)`...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import argand_aten as aten
from argand_c10 import Tensor, finfo
from argand_c10 import bool as bool_

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq",
    "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular",
    "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A region of values.

    Attributes:
      is_discrete: whether the values are isolated.
      event_dim: the number of last dimensions that make one event; `check` answers for the others.
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """Of `value` (*batch, *event): which events lie in the region, bools (*batch)."""
        raise NotImplementedError(f"{type(self).__name__} does not define check")

    def __repr__(self) -> str:
        return _name(self) + "()"


def _name(constraint: Constraint) -> str:
    """The class without the underscore that keeps it apart from its ready instance."""
    return type(constraint).__name__.removeprefix("_")


class _Dependent(Constraint):
    """A region that other parameters decide: it cannot be checked by itself.

    Args:
      is_discrete, event_dim: where they are known all the same; else they raise NotImplementedError when they are read.
    """

    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return self._known("is_discrete", self._is_discrete)  # type: ignore[no-any-return]

    @property
    def event_dim(self) -> int:
        return self._known("event_dim", self._event_dim)  # type: ignore[no-any-return]

    def _known(self, name: str, value: Any) -> Any:
        if value is NotImplemented:
            raise NotImplementedError(f"{_name(self)}.{name} is not known without an instance")
        return value

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> Any:
        """The same with attributes that are known: `constraints.dependent(is_discrete=True, event_dim=1)`."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Tensor) -> Tensor:
        raise ValueError(
            f"{_name(self)}.check: got a region that depends on other parameters, expected one of an instance"
        )


def is_dependent(constraint: object) -> bool:
    """Whether the region depends on other parameters, so that it cannot be checked."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of a distribution that gives a constraint; read on the class it stands for a dependent one.

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self): return constraints.interval(self.low, self.high)
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> Any:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _require(condition: bool, name: str, message: str) -> None:
    """PyTorch has AssertionErrors here."""
    if not condition:
        raise AssertionError(f"{name}: {message}")


def _require_constraint(owner: Constraint, base: object) -> None:
    _require(
        isinstance(base, Constraint),
        _name(owner),
        f"got {type(base).__name__}, expected a Constraint",
    )


def _all_of(valid: Tensor, kept: int, expected: int, dim: int) -> Tensor:
    """Whether all is valid in the dimensions from `kept` on."""
    if kept < 0:
        raise ValueError(f"check: got a value of {dim} dimensions, expected at least {expected}")
    return valid.reshape((*valid.shape[:kept], -1)).all(-1)


class _IndependentConstraint(Constraint):
    """`base_constraint` for all of the next `reinterpreted_batch_ndims` dimensions at once."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        _require_constraint(self, base_constraint)
        ndims = reinterpreted_batch_ndims
        _require(
            isinstance(ndims, int) and ndims >= 0,
            _name(self),
            f"got reinterpreted_batch_ndims={ndims!r}, expected an int >= 0",
        )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = ndims
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete  # type: ignore[no-any-return]

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims  # type: ignore[no-any-return]

    def check(self, value: Tensor) -> Tensor:
        valid = self.base_constraint.check(value)
        return _all_of(
            valid, valid.dim() - self.reinterpreted_batch_ndims, self.event_dim, value.dim()
        )

    def __repr__(self) -> str:
        return f"{_name(self)}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """`base_constraint` of a mixture's components, for values without the dimension of components."""

    def __init__(self, base_constraint: Constraint) -> None:
        _require_constraint(self, base_constraint)
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete  # type: ignore[no-any-return]

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim  # type: ignore[no-any-return]

    def check(self, value: Tensor) -> Tensor:
        valid = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return _all_of(valid, value.dim() - self.event_dim, self.event_dim, value.dim())

    def __repr__(self) -> str:
        return f"{_name(self)}({self.base_constraint!r})"


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors of zeros and a single 1."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _FromBelow(Constraint):
    """With a lower bound alone, a number or a tensor that can be broadcast to values."""

    def __init__(self, lower_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound
        super().__init__()

    def __repr__(self) -> str:
        return f"{_name(self)}(lower_bound={self.lower_bound})"


class _FromAbove(Constraint):
    """With an upper bound alone."""

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound
        super().__init__()

    def __repr__(self) -> str:
        return f"{_name(self)}(upper_bound={self.upper_bound})"


class _Between(Constraint):
    """With two bounds."""

    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        super().__init__()

    def __repr__(self) -> str:
        return f"{_name(self)}(lower_bound={self.lower_bound}, upper_bound={self.upper_bound})"


class _IntegerInterval(_Between):
    """Whole numbers from `lower_bound` to `upper_bound`."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


class _IntegerLessThan(_FromAbove):
    """Whole numbers up to `upper_bound`."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_FromBelow):
    """Whole numbers from `lower_bound` on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    """All numbers, infinities included; not NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(_FromBelow):
    """(lower_bound, inf]."""

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_FromBelow):
    """[lower_bound, inf]."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _LessThan(_FromAbove):
    """[-inf, upper_bound)."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """[lower_bound, upper_bound]."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """[lower_bound, upper_bound)."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors of numbers >= 0 with sum 1, up to 1e-6."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of numbers >= 0 with a sum of at most `upper_bound`."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound
        super().__init__()

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return lower_triangular.check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices: `lower_cholesky` with rows of length 1, up to 10 roundings an element."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10
        length = value.detach().square().sum(-1).sqrt()
        return lower_cholesky.check(value) & ((length - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        is_square = value.shape[-2] == value.shape[-1]
        return aten.full(value.shape[:-2], is_square, dtype=bool_, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices, up to 1e-6 and a relative 1e-5."""

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return aten.isclose(value, value.mT, atol=1e-6).all(-1).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        return (aten.ops.linalg_eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        is_symmetric = super().check(value)
        if not is_symmetric.all():
            return is_symmetric
        return aten.ops.linalg_cholesky_ex(value)[1] == 0


class _Parts(Constraint):
    """One constraint a part along `dim`."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        for each in cseq:
            _require_constraint(self, each)
        self.cseq = list(cseq)
        self.dim = dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    def _check_dim(self, value: Tensor) -> None:
        _require(
            -value.dim() <= self.dim < value.dim(),
            f"{_name(self)}.check",
            f"got a value of {value.dim()} dimensions, expected one with dim {self.dim}",
        )


class _Cat(_Parts):
    """Constraints of the parts, of `lengths` along `dim` (default 1 each), of what `cat` joins."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        _require(
            len(self.lengths) == len(self.cseq),
            _name(self),
            f"got {len(self.lengths)} lengths, expected {len(self.cseq)}",
        )

    @property
    def event_dim(self) -> int:
        dim: int = max(c.event_dim for c in self.cseq)
        return dim

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        parts = zip(self.cseq, starts, self.lengths, strict=True)
        return aten.cat([c.check(value.narrow(self.dim, at, n)) for c, at, n in parts], self.dim)


class _Stack(_Parts):
    """Constraints of the parts along `dim` of what `stack` joins."""

    @property
    def event_dim(self) -> int:
        dim: int = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        parts = zip(self.cseq, value.unbind(self.dim), strict=False)
        return aten.stack([c.check(part) for c, part in parts], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
