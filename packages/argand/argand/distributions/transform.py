"""What transforms are, and transforms of transforms: inverse, one after another, over dimensions of an event."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.utils import Shape, _sum_rightmost, lazy_property
from argand_c10 import Tensor

__all__ = [
    "ComposeTransform", "IndependentTransform", "PlainTransform", "Transform", "check_dims", "identity_transform", "independent",
]  # fmt: skip


class Transform:
    """A map of values, `t(x)`, with its inverse `t.inv`.

    A subclass gives `domain`, `codomain`, `_call` and, as far as they exist, `_inverse`, `log_abs_det_jacobian`, `bijective` and, of monotonic
    univariate maps, `sign`. For maps that are not bijective `inv` gives one of the values that are mapped to its argument.

    Args:
      cache_size: 1 keeps the last pair (x, t(x)), so that `t.inv(t(x))` is x itself.

    Raises:
      ValueError: for other cache sizes than 0 and 1.
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"{type(self).__name__}: got cache_size={cache_size}, expected 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None, "_cached_x_y": (None, None)}

    @property
    def event_dim(self) -> int:
        """The dimensions of an event, where domain and codomain have as many.

        Raises:
          ValueError: where they have not.
        """
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim  # type: ignore[no-any-return]
        raise ValueError(
            f"{type(self).__name__}: event_dim of domain and codomain differ, ask domain.event_dim or codomain.event_dim"
        )

    @property
    def inv(self) -> Any:
        """The inverse map."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 where the map increases, -1 where it decreases (int or tensor)."""
        raise NotImplementedError(
            f"{type(self).__name__} has no sign: it is not monotonic, or does not say"
        )

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same map with a cache of this size."""
        return self if self._cache_size == cache_size else self._copy(cache_size)

    def _copy(self, cache_size: int) -> Any:
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self).__name__}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._call(x)
        old_x, old_y = self._cached_x_y
        if x is not old_x:
            old_y = self._call(x)
            self._cached_x_y = (x, old_y)
        return old_y  # type: ignore[no-any-return]

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        old_x, old_y = self._cached_x_y
        if y is not old_y:
            old_x = self._inverse(y)
            self._cached_x_y = (old_x, y)
        return old_x  # type: ignore[no-any-return]

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define its map")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |det dy/dx| at x and y = t(x), without the dimensions of an event."""
        raise NotImplementedError(f"{type(self).__name__} does not give log_abs_det_jacobian")

    def forward_shape(self, shape: Shape) -> Any:
        """The shape of t(x) for x of this shape."""
        return shape

    def inverse_shape(self, shape: Shape) -> Any:
        """The shape of t.inv(y) for y of this shape."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform, whose inverse is that transform itself."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> bool:
        return self._inv.bijective  # type: ignore[no-any-return]

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Any:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and bool(self._inv == other._inv)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)  # type: ignore[no-any-return]

    def forward_shape(self, shape: Shape) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Any:
        return self._inv.forward_shape(shape)


def independent(constraint: Any, dims: int) -> Any:
    """`constraint` of events with `dims` further dimensions."""
    return constraints.independent(constraint, dims) if dims > 0 else constraint


class ComposeTransform(Transform):
    """Transforms one after another, the first first.

    Args:
      parts: the transforms.
      cache_size: of the parts.
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(
                dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim
            )
        first = self.parts[0].domain
        return independent(first, dims - first.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(
                dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim
            )
        last = self.parts[-1].codomain
        return independent(last, dims - last.event_dim)

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Any:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def _copy(self, cache_size: int) -> Any:
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return aten.zeros_like(x)
        total: Any = 0.0
        dims = self.domain.event_dim
        for i, part in enumerate(self.parts):
            to = y if i == len(self.parts) - 1 else part(x)
            term = part.log_abs_det_jacobian(x, to)
            total = total + _sum_rightmost(term, dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = to
        return total  # type: ignore[no-any-return]

    def forward_shape(self, shape: Shape) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Shape) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose next `reinterpreted_batch_ndims` dimensions count as dimensions of the event: log_abs_det_jacobian sums over them.

    Args:
      base_transform: the transform.
      reinterpreted_batch_ndims: the number of dimensions.
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _copy(self, cache_size: int) -> Any:
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective  # type: ignore[no-any-return]

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        check_dims(self, x.shape, self.domain.event_dim)
        return self.base_transform(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        check_dims(self, y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(terms, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def check_dims(transform: Transform, shape: Shape, least: int) -> None:
    if len(shape) < least:
        raise ValueError(
            f"{type(transform).__name__}: got too few dimensions on input, shape {tuple(shape)}, expected at least {least}"
        )


class PlainTransform(Transform):
    """Without parameters: equal to all of its class."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)
