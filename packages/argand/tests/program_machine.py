"""A machine that runs one random program of views, in-place operations and broadcasting on tensors and on NumPy arrays.

A program is a list of steps, a step an operation's name and bytes from which the operation takes its choices. Values are
small integers in every dtype, so that results are compared exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import argand

Step = tuple[str, bytes]

MAX_ELEMENTS = 600


class Choices:
    """Reads choices from bytes; zeros for ever when they are used up."""

    def __init__(self, data: bytes) -> None:
        self.data = iter(data)

    def below(self, n: int) -> int:
        return next(self.data, 0) % n

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def one_of(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]


@dataclass
class Pair:
    """A tensor and the array that it must equal."""

    tensor: Any
    array: np.ndarray


@dataclass
class Machine:
    """All values made so far; every one is compared after every step."""

    dtype: str
    values: list[Pair] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def start(self, choices: Choices) -> None:
        self.new_value([choices.below(5) for _ in range(choices.below(4))], 1)

    def new_value(self, shape: Sequence[int], begin: int) -> Pair:
        numbers = (np.arange(int(np.prod(shape, dtype=int))) + begin) % 7 - 3
        array = numbers.reshape(shape).astype(self.dtype)
        pair = Pair(argand.tensor(array.tolist(), dtype=getattr(argand, self.dtype)), array)
        # An empty list has no inner sizes.
        pair.tensor = pair.tensor.reshape(list(shape))
        self.values.append(pair)
        return pair

    def pick(self, choices: Choices) -> Pair:
        # The latest values first: that is where chains of views are.
        return self.values[-1 - choices.below(min(len(self.values), 6))]

    def add(self, text: str, tensor: Any, array: Any) -> None:
        self.log.append(text)
        self.values.append(Pair(tensor, np.asarray(array)))

    def add_result(self, text: str, tensor: Any, array: Any) -> None:
        """Adds a value of its own memory, in C order: the two need not agree on a new result's layout."""
        self.add(text, tensor.contiguous(), np.array(array, dtype=self.dtype, order="C", copy=True))

    def run(self, program: Sequence[Step]) -> None:
        for name, data in program:
            OPERATIONS[name](self, Choices(data))
            self.check()

    def check(self) -> None:
        for i, pair in enumerate(self.values):
            where = f"value {i} after: {'; '.join(self.log)}"
            assert tuple(pair.tensor.shape) == pair.array.shape, where
            assert str(pair.tensor.dtype) == f"argand.{pair.array.dtype}", where
            if pair.array.size:
                steps = [s * pair.tensor.element_size() for s in pair.tensor.stride()]
                for size, ours, theirs in zip(
                    pair.array.shape, steps, pair.array.strides, strict=True
                ):
                    assert size == 1 or ours == theirs, f"strides of {where}"
            expected = pair.array.tolist()
            assert pair.tensor.tolist() == expected, where


OPERATIONS: dict[str, Callable[[Machine, Choices], None]] = {}


def operation(function: Callable[[Machine, Choices], None]) -> Callable[[Machine, Choices], None]:
    OPERATIONS[function.__name__] = function
    return function


# ---- views ----------------------------------------------------------------------------------------------------------
@operation
def permute(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    dims, left = [], list(range(p.array.ndim))
    while left:
        dims.append(left.pop(c.below(len(left))))
    m.add(f"permute {dims}", p.tensor.permute(dims), p.array.transpose(dims))


@operation
def transpose(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if p.array.ndim:
        a, b = (c.between(-p.array.ndim, p.array.ndim - 1) for _ in range(2))
        m.add(f"transpose {a} {b}", p.tensor.transpose(a, b), np.swapaxes(p.array, a, b))


@operation
def select(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    dims = [d for d, n in enumerate(p.array.shape) if n]
    if dims:
        dim = c.one_of(dims)
        n = p.array.shape[dim]
        index = c.between(-n, n - 1)
        key = (slice(None),) * dim + (index,)
        m.add(f"select {dim} {index}", p.tensor.select(dim, index), p.array[(*key, ...)])


@operation
def subscript(m: Machine, c: Choices) -> None:
    """Basic indexing with every kind of entry."""
    p = m.pick(c)
    key: list[Any] = []
    for n in p.array.shape[: c.below(p.array.ndim + 1)]:
        kind = c.below(4)
        if kind == 0 and n:
            key.append(c.between(-n, n - 1))
        elif kind == 1:
            key.append(None)
            key.append(slice(None))
        else:
            key.append(slice(c.between(-n - 1, n + 1), c.between(-n - 1, n + 1), c.between(1, 3)))
    if c.below(3) == 0:
        key.append(Ellipsis)
    m.add(
        f"[{key}]", p.tensor[tuple(key)], p.array[(*key, ...)[: len(key) + (Ellipsis not in key)]]
    )


@operation
def narrow(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if p.array.ndim:
        dim = c.below(p.array.ndim)
        n = p.array.shape[dim]
        begin = c.between(0, n)
        length = c.between(0, n - begin)
        key = (slice(None),) * dim + (slice(begin, begin + length),)
        m.add(f"narrow {dim} {begin} {length}", p.tensor.narrow(dim, begin, length), p.array[key])


@operation
def unsqueeze(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if p.array.ndim < 5:
        dim = c.between(-p.array.ndim - 1, p.array.ndim)
        m.add(f"unsqueeze {dim}", p.tensor.unsqueeze(dim), np.expand_dims(p.array, dim))


@operation
def squeeze(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    m.add("squeeze", p.tensor.squeeze(), p.array.squeeze())


@operation
def expand(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    sizes = [c.between(0, 3) if n == 1 else n for n in p.array.shape]
    if c.below(2) and p.array.ndim < 4:
        sizes.insert(0, c.between(0, 3))
    if np.prod(sizes, dtype=int) <= MAX_ELEMENTS:
        m.add(f"expand {sizes}", p.tensor.expand(sizes), np.broadcast_to(p.array, sizes))


@operation
def diagonal(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if p.array.ndim >= 2:
        offset = c.between(-2, 2)
        a = c.below(p.array.ndim)
        b = (a + c.between(1, p.array.ndim - 1)) % p.array.ndim
        # NumPy's array is read-only by convention, not in memory.
        array = np.diagonal(p.array, offset, a, b)
        if p.array.flags.writeable:
            array.flags.writeable = True
        m.add(f"diagonal {offset} {a} {b}", p.tensor.diagonal(offset, a, b), array)


@operation
def unfold(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    dims = [d for d, n in enumerate(p.array.shape) if n]
    if dims and p.array.ndim < 5:
        dim = c.one_of(dims)
        size, step = c.between(1, p.array.shape[dim]), c.between(1, 3)
        windows = np.lib.stride_tricks.sliding_window_view(p.array, size, dim, writeable=True)
        array = windows[(slice(None),) * dim + (slice(None, None, step),)]
        if p.array.flags.writeable and array.size <= MAX_ELEMENTS:
            m.add(f"unfold {dim} {size} {step}", p.tensor.unfold(dim, size, step), array)


@operation
def split(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if p.array.ndim:
        dim = c.below(p.array.ndim)
        size, n = c.between(1, 3), p.array.shape[dim]
        if n:
            parts = p.tensor.split(size, dim)
            assert len(parts) == -(-n // size)
            i = c.below(len(parts))
            key = (slice(None),) * dim + (slice(i * size, (i + 1) * size),)
            m.add(f"split {size} {dim} part {i}", parts[i], p.array[key])


@operation
def view(m: Machine, c: Choices) -> None:
    """A view with other sizes: possible for both, or for neither."""
    p = m.pick(c)
    sizes = other_sizes(p.array.size, c)
    array = p.array.view()
    try:
        array.shape = sizes
    except AttributeError:
        try:
            p.tensor.view(sizes)
        except RuntimeError as error:
            assert "view" in str(error)
            return
        raise AssertionError(f"view {sizes} of {p.array.shape} strides {p.array.strides}") from None
    m.add(f"view {sizes}", p.tensor.view(sizes), array)


def other_sizes(count: int, c: Choices) -> list[int]:
    """Sizes with `count` elements."""
    if count == 0:
        return [0, *(c.between(1, 3) for _ in range(c.below(2)))]
    sizes = []
    for factor in (c.between(2, 4), c.between(2, 4)):
        if count % factor == 0:
            sizes.append(factor)
            count //= factor
    sizes.insert(c.below(len(sizes) + 1), count)
    return sizes


# ---- new values, with broadcasting ----------------------------------------------------------------------------------
BINARY: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "add": (lambda a, b: a + b, np.add),
    "sub": (lambda a, b: a - b, np.subtract),
    "maximum": (lambda a, b: argand.maximum(a, b), np.maximum),
    "minimum": (lambda a, b: argand.minimum(a, b), np.minimum),
}


def broadcastable(a: np.ndarray, b: np.ndarray) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return None


def refuses(call: Callable[[], Any]) -> bool:
    """Whether the call raises the error for sizes or memory that do not fit."""
    try:
        call()
    except RuntimeError:
        return True
    return False


@operation
def binary(m: Machine, c: Choices) -> None:
    a, b = m.pick(c), m.pick(c)
    name = c.one_of(sorted(BINARY))
    ours, theirs = BINARY[name]
    shape = broadcastable(a.array, b.array)
    if shape is None:
        assert refuses(lambda: ours(a.tensor, b.tensor)), f"{name} {a.array.shape} {b.array.shape}"
    elif np.prod(shape, dtype=int) <= MAX_ELEMENTS:
        m.add_result(name, ours(a.tensor, b.tensor), theirs(a.array, b.array))


@operation
def where(m: Machine, c: Choices) -> None:
    a, b = m.pick(c), m.pick(c)
    if broadcastable(a.array, b.array) is not None:
        array = np.where(a.array > 0, a.array, b.array)
        if array.size <= MAX_ELEMENTS:
            m.add_result("where", argand.where(a.tensor > 0, a.tensor, b.tensor), array)


@operation
def reduce(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if p.array.ndim:
        dim, keepdim = c.below(p.array.ndim), bool(c.below(2))
        if p.array.shape[dim]:
            m.add_result(
                f"amax {dim}", p.tensor.amax(dim, keepdim), p.array.max(dim, keepdims=keepdim)
            )


@operation
def clone(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    m.add_result("clone", p.tensor.clone(), p.array)


@operation
def fresh(m: Machine, c: Choices) -> None:
    shape = [c.one_of([1, 2, 3, 4, 0]) for _ in range(c.below(4))]
    m.log.append(f"new {shape}")
    m.new_value(shape, c.below(7))


# ---- in place -------------------------------------------------------------------------------------------------------
def overlaps_itself(array: np.ndarray) -> bool:
    """Whether two elements lie at one address."""
    if array.size < 2:
        return False
    offsets = np.zeros(array.shape, dtype=np.int64)
    for dim, (n, step) in enumerate(zip(array.shape, array.strides, strict=True)):
        index = np.arange(n) * step
        offsets = offsets + index.reshape([n if d == dim else 1 for d in range(array.ndim)])
    return np.unique(offsets).size < array.size


def write(
    m: Machine, text: str, p: Pair, ours: Callable[[], Any], theirs: Callable[[], Any]
) -> None:
    """An in-place operation; on expanded memory it must be refused, with nothing changed."""
    if overlaps_itself(p.array):
        # Windows that overlap are not detected in general: what a write to them does is not defined.
        expanded = any(
            n > 1 and step == 0 for n, step in zip(p.array.shape, p.array.strides, strict=True)
        )
        assert not expanded or refuses(ours), (
            f"{text} on overlapping memory after: {'; '.join(m.log)}"
        )
        return
    m.log.append(text)
    ours()
    if p.array.size:
        p.array.flags.writeable = True
        theirs()


@operation
def scalar_in_place(m: Machine, c: Choices) -> None:
    p, n = m.pick(c), c.between(-2, 2)
    t, a = p.tensor, p.array
    name, ours, theirs = c.one_of(
        [
            ("add_", lambda: t.add_(n), lambda: np.add(a, n, out=a, casting="unsafe")),
            ("sub_", lambda: t.sub_(n), lambda: np.subtract(a, n, out=a, casting="unsafe")),
            ("fill_", lambda: t.fill_(n), lambda: a.fill(n)),
            ("zero_", lambda: t.zero_(), lambda: a.fill(0)),
            ("neg_", lambda: t.neg_(), lambda: np.negative(a, out=a)),
            ("clamp_", lambda: t.clamp_(-1, 2), lambda: np.clip(a, -1, 2, out=a)),
        ]
    )
    write(m, f"{name} {n}", p, ours, theirs)


@operation
def binary_in_place(m: Machine, c: Choices) -> None:
    """A source may have memory in common with the target; it is read first."""
    p, q = m.pick(c), m.pick(c)
    name = c.one_of(["add_", "sub_", "copy_"])
    ours = getattr(p.tensor, name)
    if name == "copy_" and q.array.ndim > p.array.ndim:
        return  # dimensions of size one in front may go there, as in assignments
    if name == "copy_" and p is q:
        return  # nothing to do, which expanded memory allows
    if broadcastable(p.array, q.array) != p.array.shape:
        assert refuses(lambda: ours(q.tensor)), f"{name} {p.array.shape} {q.array.shape}"
        return
    numpy_function = {
        "add_": np.add,
        "sub_": np.subtract,
        "copy_": lambda a, b, out: np.copyto(out, b),
    }[name]
    # NumPy too reads a source in common memory first.
    write(m, name, p, lambda: ours(q.tensor), lambda: numpy_function(p.array, q.array, out=p.array))


@operation
def assign_item(m: Machine, c: Choices) -> None:
    p, n = m.pick(c), c.between(-3, 3)
    if p.array.ndim and p.array.shape[0]:
        size = p.array.shape[0]
        key = c.one_of([0, -1, slice(c.below(size), None), slice(None, None, 2), Ellipsis])

        def ours() -> None:
            p.tensor[key] = n

        def theirs() -> None:
            p.array[key] = n

        # Only the part that is written must not overlap itself; the whole tensor is the simpler rule to test.
        if not overlaps_itself(p.array):
            write(m, f"[{key}] = {n}", p, ours, theirs)


@operation
def masked_fill_in_place(m: Machine, c: Choices) -> None:
    p, n = m.pick(c), c.between(-3, 3)
    mask = p.array > 0
    tensor_mask = p.tensor > 0

    def theirs() -> None:
        p.array[mask] = n

    write(m, f"masked_fill_ {n}", p, lambda: p.tensor.masked_fill_(tensor_mask, n), theirs)
