"""Dimensions that may vary: named ones with bounds, and ones that follow from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

__all__ = ["Dim", "DimHint", "dims"]


@dataclass(frozen=True, slots=True)
class DimHint:
    """`Dim.AUTO`, `Dim.DYNAMIC` or `Dim.STATIC`: whether a dimension varies, without a name for it; `Dim.AUTO(min=2, max=64)` with bounds."""

    kind: str
    min: int | None = None
    max: int | None = None

    def __call__(self, min: int | None = None, max: int | None = None) -> DimHint:
        """The same with bounds, both included."""
        _check_bounds(repr(self), min, max)
        return DimHint(self.kind, min, max)

    def __repr__(self) -> str:
        given = _bounds_text(self.min, self.max)
        return f"Dim.{self.kind.upper()}" + (f"({', '.join(given)})" if given else "")


@dataclass(frozen=True, eq=False)
class Dim:
    """A size that may vary; equal in all places where it stands.

    Args:
        name: an identifier, for messages and `range_constraints`.
        min: the least size, 0 or more; by default 1, or 2 where the program treats the size 1 as another case.
        max: the largest size; by default unbounded.

    `2 * batch + 1` is a size that follows from `batch`.
    """

    name: str
    min: int | None = None
    max: int | None = None

    AUTO: ClassVar[DimHint] = DimHint("auto")
    DYNAMIC: ClassVar[DimHint] = DimHint("dynamic")
    STATIC: ClassVar[DimHint] = DimHint("static")

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(f"Dim: got the name {self.name!r}, expected an identifier")
        _check_bounds(f"Dim {self.name!r}", self.min, self.max)

    def __mul__(self, factor: int) -> DerivedDim:
        return DerivedDim(self, factor, 0) if _is_int(factor) else NotImplemented

    __rmul__ = __mul__

    def __add__(self, offset: int) -> DerivedDim:
        return DerivedDim(self, 1, offset) if _is_int(offset) else NotImplemented

    __radd__ = __add__

    def __sub__(self, offset: int) -> DerivedDim:
        return DerivedDim(self, 1, -offset) if _is_int(offset) else NotImplemented

    def __repr__(self) -> str:
        return f"Dim({', '.join([repr(self.name), *_bounds_text(self.min, self.max)])})"


@dataclass(frozen=True, eq=False)
class DerivedDim:
    """`factor * root + offset`, as `2 * Dim("batch") + 1`."""

    root: Dim
    factor: int
    offset: int
    name: str = field(init=False)

    def __post_init__(self) -> None:
        if self.factor < 1:
            raise ValueError(
                f"Dim: got {self.factor} * {self.root.name}, expected a positive factor"
            )
        scaled = self.root.name if self.factor == 1 else f"{self.factor}*{self.root.name}"
        offset = f" {'+' if self.offset > 0 else '-'} {abs(self.offset)}" if self.offset else ""
        object.__setattr__(self, "name", scaled + offset)

    def __mul__(self, factor: int) -> DerivedDim:
        return DerivedDim(self.root, self.factor * factor, self.offset * factor)

    __rmul__ = __mul__

    def __add__(self, offset: int) -> DerivedDim:
        return DerivedDim(self.root, self.factor, self.offset + offset)

    __radd__ = __add__

    def __sub__(self, offset: int) -> DerivedDim:
        return self + -offset

    def __repr__(self) -> str:
        return self.name


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_bounds(what: str, low: int | None, high: int | None) -> None:
    least = 0 if low is None else low
    if least < 0 or (high is not None and high < least):
        raise ValueError(f"{what}: got min={low}, max={high}, expected 0 <= min <= max")


def _bounds_text(low: int | None, high: int | None) -> list[str]:
    return [f"{name}={x}" for name, x in (("min", low), ("max", high)) if x is not None]


def bounds_of(dim: Any) -> tuple[int | None, int | None]:
    """The least and the largest size of a dimension that the user stated."""
    if isinstance(dim, DerivedDim):
        low, high = dim.root.min, dim.root.max
        return (
            None if low is None else dim.factor * low + dim.offset,
            None if high is None else dim.factor * high + dim.offset,
        )
    return (dim.min, dim.max) if isinstance(dim, (Dim, DimHint)) else (None, None)


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several dimensions with the same bounds."""
    return tuple(Dim(name, min=min, max=max) for name in names)


@dataclass(frozen=True, slots=True)
class Relation:
    """A size of an input: `factor * name + offset` for the value of the dimension `name`."""

    name: str
    factor: int = 1
    offset: int = 0

    def __str__(self) -> str:
        return DerivedDim(Dim(self.name), self.factor, self.offset).name

    def of(self, other: Relation) -> Relation:
        """This one's size where its dimension is the size `other`."""
        return Relation(
            other.name, self.factor * other.factor, self.factor * other.offset + self.offset
        )

    def solve(self, size: int) -> int | None:
        """The dimension's value for a size; None where there is none."""
        value, rest = divmod(size - self.offset, self.factor)
        return value if rest == 0 else None

    @staticmethod
    def read(text: str) -> Relation:
        """Of what `str` gives.

        Raises:
            ValueError: it is something else.
        """
        found = re.fullmatch(r"(?:(\d{1,18})\*)?([A-Za-z_]\w*)(?: ([+-]) (\d{1,18}))?", text)
        if not found or found[1] == "0":
            raise ValueError(f"got the size {text!r}, expected a number or one as '2*batch + 1'")
        offset = int(found[4] or 0)
        return Relation(found[2], int(found[1] or 1), -offset if found[3] == "-" else offset)


def spec_of(dynamic_shapes: Any, names: list[str], leaves: list[Any], tree: Any) -> list[Any]:
    """The dynamic dimensions of each leaf of (args, kwargs): {dim: Dim | DerivedDim | DimHint | int | None} or None.

    Args:
        dynamic_shapes: None; or a dict by parameter name, or a tuple or list by position, nested as the arguments are; for
            a tensor a dict by dimension, or a tuple or list with one entry a dimension.
        names: the parameters that the arguments are bound to, in order.
        leaves: of the arguments.
        tree: their description, of a dict by parameter name.
    """
    if dynamic_shapes is None:
        return [None] * len(leaves)
    if isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) > len(names):
            raise ValueError(
                f"export: got dynamic_shapes with {len(dynamic_shapes)} entries, expected one for each of {names}"
            )
        dynamic_shapes = dict(zip(names, dynamic_shapes, strict=False))
    if not isinstance(dynamic_shapes, Mapping):
        raise TypeError(
            f"export: got dynamic_shapes of type {type(dynamic_shapes).__name__}, expected a dict, tuple or list"
        )
    unknown = set(dynamic_shapes) - set(names)
    if unknown:
        raise ValueError(
            f"export: got dynamic_shapes for {sorted(unknown)}, expected names among the arguments {names}"
        )
    found: list[Any] = []
    _collect(dynamic_shapes, tree, iter(leaves), "dynamic_shapes", found)
    return found


def _collect(spec: Any, tree: Any, leaves: Any, where: str, found: list[Any]) -> None:
    if tree is None:
        found.append(_dimensions(spec, next(leaves), where))
        return
    if tree[0] == "dict":
        if spec is not None and not isinstance(spec, Mapping):
            raise TypeError(f"export: got {spec!r} at {where}, expected a dict or None")
        for key, inner in tree[1]:
            _collect((spec or {}).get(key), inner, leaves, f"{where}[{key!r}]", found)
        return
    if spec is not None and (not isinstance(spec, (tuple, list)) or len(spec) != len(tree[-1])):
        raise TypeError(
            f"export: got {spec!r} at {where}, expected {len(tree[-1])} entries or None"
        )
    for i, inner in enumerate(tree[-1]):
        _collect(None if spec is None else spec[i], inner, leaves, f"{where}[{i}]", found)


def _dimensions(spec: Any, leaf: Any, where: str) -> dict[int, Any] | None:
    if spec is None:
        return None
    if not hasattr(leaf, "shape"):
        raise TypeError(
            f"export: got {spec!r} at {where}, where the argument is no tensor; expected None"
        )
    if isinstance(spec, (tuple, list)):
        if len(spec) != len(leaf.shape):
            raise ValueError(
                f"export: got {len(spec)} dimensions at {where}, expected {len(leaf.shape)} for the shape {list(leaf.shape)}"
            )
        spec = dict(enumerate(spec))
    if not isinstance(spec, Mapping):
        raise TypeError(f"export: got {spec!r} at {where}, expected a dict of dimensions")
    result: dict[int, Any] = {}
    for d, dim in spec.items():
        if not _is_int(d) or not -len(leaf.shape) <= d < len(leaf.shape):
            raise ValueError(
                f"export: got dimension {d!r} at {where}, expected one of {len(leaf.shape)}"
            )
        size = leaf.shape[d]
        if _is_int(dim) and dim != size:
            raise ValueError(
                f"export: got the fixed size {dim} at {where}[{d}], but the example has {size}"
            )
        if not (dim is None or _is_int(dim) or isinstance(dim, (Dim, DerivedDim, DimHint))):
            raise TypeError(
                f"export: got {dim!r} at {where}[{d}], expected a Dim, Dim.AUTO, a number or None"
            )
        result[d % len(leaf.shape)] = dim
    return result
