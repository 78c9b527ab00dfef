"""Tensors without elements: geometry, dtype, device, and which memory they would share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

import argand_c10 as c10
from argand_c10 import Operator, Size, Tensor, protocol
from argand_c10._C import OperatorMethod
from argand_c10.errors import DataDependentError, UnsupportedError
from argand_fx.shapes.known import known_elements
from argand_fx.shapes.layout import (
    contiguous_strides,
    element_span,
    is_contiguous,
    pointwise_strides,
)
from argand_fx.symbolic import SymbolicValue

if TYPE_CHECKING:
    from argand_fx.node import Node
    from argand_fx.shapes.builder import GraphBuilder
    from argand_fx.shapes.shape_env import ShapeEnv

__all__ = ["FakeStorage", "FakeTensor", "SymSize", "identical", "pointwise_layout", "says_format"]

_TensorOrNumber = (int, float, complex, Tensor, SymbolicValue)


class SymSize(tuple[Any, ...]):
    """The sizes of a tensor, where some are symbolic; otherwise as `argand_c10.Size`."""

    __slots__ = ()

    def numel(self) -> Any:
        """The product of the sizes."""
        n: Any = 1
        for size in self:
            n = n * size
        return n

    def __repr__(self) -> str:
        return f"argand.Size({list(self)!r})"


class FakeStorage:
    """Identity of memory: views share it, in-place changes raise its version.

    Attributes:
        nbytes: size in bytes, which may be symbolic.
        version: number of in-place changes since it was made.
        offset_read: whether anything depends on where in it its tensors begin.
        no_grad_view: whether a view of it was made while gradients were not recorded.
    """

    __slots__ = ("__weakref__", "_nbytes", "no_grad_view", "offset_read", "version")

    def __init__(self, nbytes: Any, version: int = 0) -> None:
        self._nbytes = nbytes
        self.version = version
        self.offset_read = False
        self.no_grad_view = False

    @property
    def nbytes(self) -> Any:
        found = self._nbytes
        if type(found) is tuple:  # of the tensor that it was made for: computed when asked for
            shape, strides, offset, itemsize = found
            found = self._nbytes = (element_span(shape, strides) + offset) * itemsize
        return found

    def simplify(self, env: ShapeEnv) -> None:
        """Replace symbols of its size that guards made equal to others."""
        if type(self._nbytes) is not int:
            self._nbytes = env.simplify(self.nbytes)


def _size(sizes: Sequence[Any]) -> tuple[Any, ...]:
    for s in sizes:
        if type(s) is not int:
            return SymSize(sizes)
    return Size(sizes)


class FakeTensor:
    """A tensor that has everything but elements. Operators on it compute shapes, and append nodes to its builder's graph.

    Sizes, strides and the offset (in elements) may be symbolic. What needs elements raises `DataDependentError`.

    Attributes:
        shape, strides, offset, dtype, device, requires_grad: as the tensor's.
        storage: the `FakeStorage`; the same object for all views of one memory.
        base: the fake tensor that this is a view of (never itself a view), or None.
        node: the graph node that makes this value, or None.
        builder: the `GraphBuilder` that operators on it go to, or None.
    """

    __slots__ = (
        "__weakref__",
        "_contiguous",
        "_leaf",
        "base",
        "builder",
        "device",
        "dtype",
        "node",
        "offset",
        "requires_grad",
        "shape",
        "storage",
        "strides",
    )

    def __init__(
        self,
        shape: Sequence[Any],
        strides: Sequence[Any] | None = None,
        offset: Any = 0,
        dtype: c10.dtype = c10.float32,
        device: c10.device | str = "cpu",
        requires_grad: bool = False,
        storage: FakeStorage | None = None,
        node: Node | None = None,
        *,
        base: FakeTensor | None = None,
        builder: GraphBuilder | None = None,
    ) -> None:
        self.shape = _size(shape)
        self._contiguous: bool | None = None
        if strides is None:
            self.strides: tuple[Any, ...] = contiguous_strides(shape)
            self._contiguous = True
        else:
            self.strides = tuple(strides)
        self.offset = offset
        self.dtype = dtype
        self.device = c10.device(device) if isinstance(device, str) else device
        self.requires_grad = requires_grad
        if storage is None:
            storage = FakeStorage((self.shape, self.strides, offset, dtype.itemsize))
        self.storage = storage
        self.node = node
        self.base = base
        self.builder = builder
        self._leaf = False

    def fresh(self, dtype: c10.dtype, requires_grad: bool) -> FakeTensor:
        """A new tensor in new memory with the same sizes, device and builder; this one is contiguous, and so is that."""
        new = object.__new__(FakeTensor)
        new.shape = self.shape
        new.strides = self.strides
        if any(type(n) is int and n < 2 for n in self.shape):  # whose strides may be any
            new.strides = contiguous_strides(self.shape)
        new._contiguous = True
        new.offset = 0
        new.dtype = dtype
        new.device = self.device
        new.requires_grad = requires_grad
        new.storage = FakeStorage((new.shape, new.strides, 0, dtype.itemsize))
        new.node = None
        new.base = None
        new.builder = self.builder
        new._leaf = False
        return new

    def simplify(self, env: ShapeEnv) -> None:
        """Replace symbols of its geometry that guards made equal to others."""
        if type(self.shape) is SymSize:
            self.shape = _size([env.simplify(n) for n in self.shape])
        self.strides = tuple([env.simplify(n) for n in self.strides])
        self.offset = env.simplify(self.offset)
        self.storage.simplify(env)

    @property
    def fake_storage(self) -> FakeStorage:
        """The same as `storage`."""
        return self.storage

    def snapshot(self) -> FakeTensor:
        """Another object with the present state, on the same storage and node."""
        copy = object.__new__(FakeTensor)
        for name in FakeTensor.__slots__:
            if name != "__weakref__":
                setattr(copy, name, getattr(self, name))
        return copy

    def __repr__(self) -> str:
        text = f"FakeTensor({list(self.shape)}, {self.dtype.name}"
        if not self.is_contiguous():
            text += f", strides={list(self.strides)}"
        if self.device.type != "cpu":
            text += f", {self.device.type}"
        return text + (", requires_grad)" if self.requires_grad else ")")

    __hash__ = object.__hash__

    # Geometry --------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def dim(self) -> int:
        return len(self.shape)

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[self._wrap("size", dim)]

    def stride(self, dim: int | None = None) -> Any:
        return self.strides if dim is None else self.strides[self._wrap("stride", dim)]

    def _wrap(self, method: str, dim: int) -> int:
        n = max(len(self.shape), 1)
        if not -n <= dim < n:
            raise IndexError(
                f"{method}: Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})"
            )
        if not self.shape:
            raise IndexError(f"{method}: Dimension specified as {dim} but tensor has no dimensions")
        return dim + n if dim < 0 else dim

    def numel(self) -> Any:
        n: Any = 1
        for size in self.shape:
            n = n * size
        return n

    nelement = numel

    def storage_offset(self) -> Any:
        return self.offset

    def is_contiguous(self, memory_format: Any = c10.contiguous_format) -> bool:
        if memory_format in (c10.channels_last, c10.channels_last_3d):
            n = 4 if memory_format is c10.channels_last else 5
            order = (0, *range(2, n), 1)
            return self.ndim == n and is_contiguous(
                [self.shape[d] for d in order], [self.strides[d] for d in order]
            )
        if self._contiguous is None:
            self._contiguous = is_contiguous(self.shape, self.strides)
        return self._contiguous

    def is_same_size(self, other: Any) -> bool:
        return tuple(self.shape) == tuple(other.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return int(self.shape[0])

    # Type and memory -------------------------------------------------------------------------

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def element_size(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    @property
    def layout(self) -> c10.layout:
        return c10.strided

    @property
    def is_cpu(self) -> bool:
        return self.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        return self.device.type == "meta"

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    is_sparse = False
    is_quantized = False

    def get_device(self) -> int:
        return -1 if self.device.index is None else self.device.index

    def is_inference(self) -> bool:
        return False

    @property
    def is_leaf(self) -> bool:
        """Whether it has no gradient history: it requires no gradient, or stands for a real leaf."""
        return self._leaf or not self.requires_grad

    @property
    def _version(self) -> int:
        return self.storage.version

    def _is_view(self) -> bool:
        return self.base is not None

    # What needs elements -----------------------------------------------------------------------

    def _read(self, what: str, read: Callable[[Tensor], Any]) -> Any:
        """What `read` gives of the tensor itself, where its elements follow from the graph."""
        known = known_elements(self)
        return self._refuse(what) if known is None else read(known)

    def _refuse(self, what: str) -> Any:
        raise DataDependentError(
            f"{what}: got a tensor without data, whose elements are known only when the graph runs"
        )

    def item(self) -> Any:
        return self._read("item", lambda t: t.item())

    def tolist(self) -> Any:
        return self._read("tolist", lambda t: t.tolist())

    def numpy(self, *, force: bool = False) -> Any:
        return self._refuse("numpy")

    def data_ptr(self) -> Any:
        return self._refuse("data_ptr")

    def __bool__(self) -> bool:
        if type(n := self.numel()) is int and n != 1:
            amount = "more than one value" if n else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {amount} is ambiguous")
        return self._read("bool", bool)  # type: ignore[no-any-return]

    def __int__(self) -> int:
        return self._read("int", int)  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return self._read("float", float)  # type: ignore[no-any-return]

    def __complex__(self) -> complex:
        return self._read("complex", complex)  # type: ignore[no-any-return]

    def __index__(self) -> int:
        return self._read("index", operator.index)  # type: ignore[no-any-return]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._refuse("numpy")

    # Operators ---------------------------------------------------------------------------------

    def _builder(self, what: str) -> GraphBuilder:
        if self.builder is None:
            raise UnsupportedError(
                f"{what}: got a fake tensor without a builder; make it by GraphBuilder"
            )
        return self.builder

    @classmethod
    def __argand_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        builder = _find_builder(args) or _find_builder(list((kwargs or {}).values()))
        if builder is None:
            raise UnsupportedError(
                f"{func}: got a fake tensor without a builder; make it by GraphBuilder"
            )
        return builder.call(func, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(Tensor, name)  # AttributeError as of a tensor
        if isinstance(found, (Operator, OperatorMethod)):
            return partial(self._call, found)
        if isinstance(found, property) and found.fget is not None:
            return found.fget(self)
        if isinstance(found, FunctionType):
            return partial(found, self)
        raise UnsupportedError(
            f"Tensor.{name}: got a fake tensor, for which it is not defined; use it outside of the graph"
        )

    def _call(self, op: Operator, *args: Any, **kwargs: Any) -> Any:
        return self._builder(op.name).call(op, (self, *args), kwargs)

    def __getitem__(self, index: Any) -> Any:
        return self._builder("index").syntax("__getitem__", self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._builder("index").syntax("__setitem__", self, index, value)

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(len(self))])

    def __contains__(self, item: Any) -> bool:
        return self._refuse("in")  # type: ignore[no-any-return]


def _find_builder(values: Sequence[Any]) -> GraphBuilder | None:
    for x in values:
        if isinstance(x, FakeTensor) and x.builder is not None:
            return x.builder
        if isinstance(x, slice):
            x = (x.start, x.stop, x.step)
        if isinstance(x, (list, tuple)):
            found = _find_builder(x)
            if found is not None:
                return found
    return None


def _is_operand(x: Any) -> bool:
    return isinstance(x, (FakeTensor, *_TensorOrNumber)) or (
        hasattr(x, "dtype") and getattr(x, "shape", None) == ()
    )


def pointwise_layout(sizes: Sequence[Any], operands: Sequence[Any]) -> Sequence[Any] | None:
    """Strides of a pointwise result; None: contiguous."""
    tensors = [v for v in operands if type(v) is FakeTensor]
    n = len(sizes)
    if n < 2 or (
        all((not t.shape or identical(t.shape, sizes)) and _is_row_major(t) for t in tensors)
        and not says_format(operands)
    ):
        return None
    return pointwise_strides(sizes, [(t.shape, t.strides) for t in tensors])


def says_format(operands: Sequence[Any]) -> bool:
    """Whether a number stands beside a contiguous tensor whose dimensions of one element say where channels are."""
    strides: Sequence[Any] = ()
    number = False
    for v in operands:
        if type(v) is not FakeTensor or not v.shape:
            number = True
        elif not strides:
            strides = v.strides
    if not number or len(strides) < 4:
        return False
    a, b = strides[1], strides[2]
    return type(a) is int and (a < b if type(b) is int else a == 1)  # symbols are above 1


def _is_row_major(t: FakeTensor) -> bool:
    """Whether a tensor is contiguous; where sizes or strides are symbolic, only what is known without a guard."""
    if t._contiguous is not None:
        return t._contiguous
    if all(type(n) is int for n in (*t.shape, *t.strides)):
        return t.is_contiguous()
    step: Any = 1
    for size, stride in zip(reversed(t.shape), reversed(t.strides), strict=True):
        if not identical((size,), (1,)):
            if not identical((stride,), (step,)):
                return False
            step = step * size
    return True


def identical(have: Sequence[Any], sizes: Sequence[Any]) -> bool:
    """Whether sizes are equal without a decision."""
    if have is sizes or type(have) is type(sizes) is c10.Size:
        return have == sizes
    if len(have) != len(sizes):
        return False
    return all(
        [
            a is b or (type(a) is int and type(b) is int and a == b)
            for a, b in zip(have, sizes, strict=True)
        ]
    )


def _binary(method: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: FakeTensor, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return self._builder(method).call(protocol.operator_of(method), (self, other))

    def reflected(self: FakeTensor, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return self._builder(method).call(protocol.operator_of(method), (other, self))

    return forward, reflected


def _unary(method: str) -> Callable[..., Any]:
    def apply(self: FakeTensor) -> Any:
        return self._builder(method).call(protocol.operator_of(method), (self,))

    return apply


def _install() -> None:
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
        forward, reflected = _binary(f"__{name}__")
        setattr(FakeTensor, f"__{name}__", forward)
        setattr(FakeTensor, f"__r{name}__", reflected)
        if name != "matmul":
            setattr(FakeTensor, f"__i{name}__", _binary(f"__i{name}__")[0])
    for name in "eq ne lt le gt ge".split():
        setattr(FakeTensor, f"__{name}__", _binary(f"__{name}__")[0])
    for name in ("div", "idiv", "rdiv"):  # division's names of old
        setattr(
            FakeTensor, f"__{name}__", getattr(FakeTensor, f"__{name.replace('div', 'truediv')}__")
        )
    for name in "neg pos abs invert".split():
        setattr(FakeTensor, f"__{name}__", _unary(f"__{name}__"))


_install()
