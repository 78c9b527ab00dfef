"""Tensors as a program with views and in-place changes sees them, each with the functional value that it has now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from argand_c10 import Operator

if TYPE_CHECKING:
    from argand_aot.tape import TapeNode

__all__ = ["Edge", "Storage", "UnsupportedGraph", "Value", "ViewStep", "fresh_value", "kept_value"]


class UnsupportedGraph(Exception):
    """A graph that cannot be compiled ahead of time; the message says why, and `fix` what the user can do."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.fix = fix


class Edge(NamedTuple):
    """Gradient number `number` of `node`."""

    node: TapeNode
    number: int


@dataclass(frozen=True, eq=False, slots=True)
class ViewStep:
    """One view operator on the way from a storage's first tensor to a view.

    Attributes:
        op: the overload.
        args: its arguments after the tensor.
        result: geometry of its result, without storage.
        recorded: whether gradients were recorded when it ran.
    """

    op: Operator
    args: tuple[Any, ...]
    result: Geometry
    recorded: bool


@dataclass(frozen=True, slots=True)
class Geometry:
    """What a tensor looks like: sizes, strides and offset in elements, possibly symbolic."""

    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    offset: Any
    dtype: Any
    device: Any

    @property
    def ndim(self) -> int:
        return len(self.shape)


@dataclass(eq=False, slots=True)
class Storage:
    """Memory that a tensor and its views share.

    Attributes:
        root: the tensor that the storage was made for; every view leads back to it.
        version: counts in-place changes.
        input: number of the graph's input it came with, or None.
        initial: the functional value it came with, whose memory it is; None for others.
        current: functional values of the views in this version, by the identities of their steps.
    """

    version: int = 0
    input: int | None = None
    initial: Any = None
    root: Value = field(init=False)
    current: dict[tuple[ViewStep, ...], Any] = field(default_factory=dict)


class Value:
    """A tensor of the program.

    It has a tensor's read-only interface, with the geometry that it has in eager execution; the functional value
    (a fake tensor of the graph that is built) may be laid out otherwise.

    Attributes:
        storage: shared with all views of the same memory.
        steps: the view operators between the storage's root and this tensor.
        base: the tensor of which this is a view for the tape; None for others, and for detached aliases.
        grad_fn, output_nr: the node that made it; inputs that require grad have their own node.
        view_version: the storage's version for which `grad_fn` holds; None before there is a record.
        no_grad_view: made while gradients were not recorded.
        kept: the storage of what this was kept of for a derivative, and its version then; None for others.
    """

    __slots__ = (
        "base",
        "fake_storage",
        "geometry",
        "grad_fn",
        "kept",
        "no_grad_view",
        "output_nr",
        "steps",
        "storage",
        "view_version",
    )

    def __init__(
        self,
        geometry: Geometry,
        storage: Storage,
        steps: tuple[ViewStep, ...] = (),
        base: Value | None = None,
    ) -> None:
        self.geometry = geometry
        self.storage = storage
        self.fake_storage = storage  # by which argument binding knows a tensor
        self.steps = steps
        self.base = base
        self.grad_fn: TapeNode | None = None
        self.output_nr = 0
        self.view_version: int | None = None
        self.no_grad_view = False
        self.kept: tuple[Storage, int] | None = None

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.geometry.shape

    @property
    def strides(self) -> tuple[Any, ...]:
        return self.geometry.strides

    @property
    def offset(self) -> Any:
        return self.geometry.offset

    @property
    def dtype(self) -> Any:
        return self.geometry.dtype

    @property
    def device(self) -> Any:
        return self.geometry.device

    @property
    def ndim(self) -> int:
        return len(self.geometry.shape)

    @property
    def requires_grad(self) -> bool:
        return False

    def stride(self) -> tuple[Any, ...]:
        return self.geometry.strides

    def storage_offset(self) -> Any:
        return self.geometry.offset

    def dim(self) -> int:
        return len(self.geometry.shape)

    def __repr__(self) -> str:
        return f"Value({list(self.shape)}, {self.dtype}, steps={len(self.steps)})"


def fresh_value(functional: Any, geometry: Geometry | None = None) -> Value:
    """A tensor with memory of its own whose content is `functional`.

    Args:
        functional: a fake tensor of the graph that is built.
        geometry: how it is laid out in eager execution; by default as `functional` is.
    """
    storage = Storage()
    value = Value(geometry or geometry_of(functional), storage)
    storage.root = value
    storage.current[()] = functional
    return value


def kept_value(value: Value, functional: Any) -> Value:
    """A value that stays what `value` is now, that is `functional`."""
    kept = fresh_value(functional, value.geometry)
    kept.kept = value.storage, value.storage.version
    return kept


def geometry_of(tensor: Any) -> Geometry:
    """Of a fake tensor or a value."""
    return Geometry(
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.storage_offset(),
        tensor.dtype,
        tensor.device,
    )


def map_values(x: Any, function: Any) -> Any:
    """A copy of `x` in which `function` has replaced each value, inside of lists and tuples too."""
    if isinstance(x, Value):
        return function(x)
    if isinstance(x, list):
        return [map_values(item, function) for item in x]
    if isinstance(x, tuple):
        return tuple([map_values(item, function) for item in x])
    return x


def values_in(x: Any) -> Sequence[Value]:
    """The values in `x`, a value or a list of them."""
    if isinstance(x, Value):
        return (x,)
    if isinstance(x, (list, tuple)):
        return [item for item in x if isinstance(item, Value)]
    return ()


def is_dense(g: Geometry) -> bool:
    """Could a new tensor have these strides?"""
    expected: Any = 1
    for i in sorted(range(g.ndim), key=lambda i: (hint_of(g.strides[i]), -i)):
        if isinstance(g.shape[i], int) and g.shape[i] in (0, 1):
            if g.shape[i] == 0:
                return True
            continue
        if str(g.strides[i]) != str(expected):
            return False
        expected = expected * g.shape[i]
    return True


def hint_of(x: Any) -> int:
    """A size or stride, or what it was when the graph was traced."""
    return int(getattr(x, "hint", x))
