"""A machine that runs one random program of operators on tensors and on NumPy arrays: views and writes through them.

A program is a list of steps, a step an operation's name and bytes from which the operation takes its choices. What an operator
computes is compared with NumPy's in double precision, and from there the array goes on with the tensor's own values: each step is judged by
itself, and all memory is compared bit for bit after every one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import program_values as values

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
    """A tensor and the array, in its dtype's carrier, that it must equal."""

    tensor: Any
    array: np.ndarray
    dtype: str

    @property
    def category(self) -> int:
        return values.category(self.dtype)

    @property
    def operand(self) -> tuple[str, int]:
        """As `result_type` asks for it."""
        return self.dtype, self.array.ndim


@dataclass
class Machine:
    """All values made so far; every one is compared after every step."""

    dtypes: Sequence[str]
    values: list[Pair] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def start(self, choices: Choices) -> None:
        for dtype in self.dtypes:
            self.new_value([choices.below(5) for _ in range(choices.below(4))], 1, dtype, choices)

    def new_value(self, shape: Sequence[int], begin: int, dtype: str, choices: Choices) -> None:
        numbers = ((np.arange(int(np.prod(shape, dtype=int))) * 3 + begin) % 14 - 6) / 2
        special = choices.below(4) == 0 and values.category(dtype) == 2
        if values.category(dtype) == 0:
            numbers = numbers > 0
        elif values.category(dtype) == 1:
            numbers = np.abs(numbers * 2) if dtype == "uint8" else numbers * 2
        elif values.category(dtype) == 3:
            numbers = numbers + 1j * np.roll(numbers, 1)
        elif special and numbers.size:
            numbers[::5] = choices.one_of([np.nan, np.inf, -np.inf, -0.0])
        array = numbers.reshape(shape).astype(values.CARRIERS[dtype])
        tensor = argand.tensor(array.tolist(), dtype=values.argand_dtype(dtype))
        # An empty list has no inner sizes.
        self.values.append(Pair(tensor.reshape(list(shape)), array, dtype))
        self.log.append(f"new {dtype} {list(shape)} {begin} {'special' if special else ''}")

    def pick(self, choices: Choices, categories: Sequence[int] = (0, 1, 2, 3)) -> Pair:
        """Of the latest values first: that is where chains of views are. A value of other categories is converted."""
        p = self.values[-1 - choices.below(min(len(self.values), 6))]
        if p.category in categories:
            return p
        fitting = [q for q in self.values if q.category in categories]
        if fitting:
            return fitting[-1 - choices.below(min(len(fitting), 6))]
        self.new_value(
            [2, 3], 1, {0: "bool", 1: "int32", 2: "float32", 3: "complex64"}[categories[0]], choices
        )
        return self.values[-1]

    def add(self, text: str, tensor: Any, array: Any, dtype: str) -> None:
        """A view: the array is the same view of its memory."""
        self.log.append(text)
        self.values.append(Pair(tensor, np.asarray(array), dtype))

    def expect(self, text: str, tensor: Any, expected: Any, dtype: str, scale: float = 1.0) -> bool:
        """Compares a result with the reference's; whether its values are such that a program goes on with them."""
        expected = np.asarray(expected)
        where = f"{text} after: {'; '.join(self.log)}"
        assert values.name_of(tensor.dtype) == dtype, (
            f"got {tensor.dtype}, expected {dtype} from {where}"
        )
        assert tuple(tensor.shape) == expected.shape, (
            f"got {tuple(tensor.shape)}, expected {expected.shape} from {where}"
        )
        actual = values.values_of(tensor)
        assert values.close(actual, expected, dtype, scale), (
            f"got {actual}, expected {expected} from {where}"
        )
        return values.is_tame(actual, dtype)

    def add_result(
        self, text: str, tensor: Any, expected: Any, dtype: str, scale: float = 1.0
    ) -> None:
        """Adds a value of its own memory, laid out as the operator laid it out."""
        if self.expect(text, tensor, expected, dtype, scale) and tensor.numel() <= MAX_ELEMENTS:
            tensor = tensor.clone()
            array = values.values_of(tensor)
            room = np.empty(tensor.numel(), dtype=array.dtype)
            steps = [step * array.itemsize for step in tensor.stride()]
            laid_out = np.ndarray(array.shape, array.dtype, room, strides=steps)
            extent = sum(
                (n - 1) * step for n, step in zip(array.shape, tensor.stride(), strict=True)
            )
            if array.size == 0 or extent != array.size - 1 or overlaps_itself(laid_out):
                tensor, laid_out = tensor.contiguous(), np.empty(array.shape, dtype=array.dtype)
            laid_out[...] = array
            self.add(text, tensor, laid_out, dtype)

    def run(self, program: Sequence[Step]) -> None:
        for name, data in program:
            OPERATIONS[name](self, Choices(data))
            self.check()

    def check(self) -> None:
        for i, pair in enumerate(self.values):
            array = values.values_of(pair.tensor)
            if array.shape == pair.array.shape and values.same(array, pair.array):
                steps = [step * pair.array.itemsize for step in pair.tensor.stride()]
                if not array.size or all(
                    n == 1 or ours == theirs
                    for n, ours, theirs in zip(array.shape, steps, pair.array.strides, strict=True)
                ):
                    continue
            raise AssertionError(
                f"value {i}: got {pair.tensor} strides {pair.tensor.stride()}, expected {pair.array} bytes {pair.array.strides}"
                f" after: {'; '.join(self.log)}"
            )


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
    m.add(f"permute {dims}", p.tensor.permute(dims), p.array.transpose(dims), p.dtype)


@operation
def transpose(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if p.array.ndim:
        a, b = (c.between(-p.array.ndim, p.array.ndim - 1) for _ in range(2))
        m.add(f"transpose {a} {b}", p.tensor.transpose(a, b), np.swapaxes(p.array, a, b), p.dtype)


@operation
def select(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    dims = [d for d, n in enumerate(p.array.shape) if n]
    if dims:
        dim = c.one_of(dims)
        n = p.array.shape[dim]
        index = c.between(-n, n - 1)
        key = (slice(None),) * dim + (index,)
        m.add(f"select {dim} {index}", p.tensor.select(dim, index), p.array[(*key, ...)], p.dtype)


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
    array = p.array[(*key, ...)[: len(key) + (Ellipsis not in key)]]
    m.add(f"[{key}]", p.tensor[tuple(key)], array, p.dtype)


@operation
def narrow(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if p.array.ndim:
        dim = c.below(p.array.ndim)
        n = p.array.shape[dim]
        begin = c.between(0, n)
        length = c.between(0, n - begin)
        key = (slice(None),) * dim + (slice(begin, begin + length),)
        m.add(
            f"narrow {dim} {begin} {length}",
            p.tensor.narrow(dim, begin, length),
            p.array[key],
            p.dtype,
        )


@operation
def unsqueeze(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if p.array.ndim < 5:
        dim = c.between(-p.array.ndim - 1, p.array.ndim)
        m.add(f"unsqueeze {dim}", p.tensor.unsqueeze(dim), np.expand_dims(p.array, dim), p.dtype)


@operation
def squeeze(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    m.add("squeeze", p.tensor.squeeze(), p.array.squeeze(), p.dtype)


@operation
def expand(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    sizes = [c.between(0, 3) if n == 1 else n for n in p.array.shape]
    if c.below(2) and p.array.ndim < 4:
        sizes.insert(0, c.between(0, 3))
    if np.prod(sizes, dtype=int) <= MAX_ELEMENTS:
        steps = np.broadcast_to(p.array, sizes).strides
        array = np.lib.stride_tricks.as_strided(p.array, sizes, steps)
        m.add(f"expand {sizes}", p.tensor.expand(sizes), array, p.dtype)


@operation
def diagonal(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    if p.array.ndim >= 2:
        offset = c.between(-2, 2)
        a = c.below(p.array.ndim)
        b = (a + c.between(1, p.array.ndim - 1)) % p.array.ndim
        # Not by np.diagonal, whose result may not be written to.
        x = np.moveaxis(p.array, (a, b), (-2, -1))[..., max(-offset, 0) :, max(offset, 0) :]
        shape = (*x.shape[:-2], min(x.shape[-2:]))
        steps = (*x.strides[:-2], x.strides[-2] + x.strides[-1])
        array = np.lib.stride_tricks.as_strided(x, shape, steps)
        m.add(f"diagonal {offset} {a} {b}", p.tensor.diagonal(offset, a, b), array, p.dtype)


@operation
def unfold(m: Machine, c: Choices) -> None:
    p = m.pick(c)
    dims = [d for d, n in enumerate(p.array.shape) if n]
    if dims and p.array.ndim < 5:
        dim = c.one_of(dims)
        size, step = c.between(1, p.array.shape[dim]), c.between(1, 3)
        windows = np.lib.stride_tricks.sliding_window_view(p.array, size, dim, writeable=True)
        array = windows[(slice(None),) * dim + (slice(None, None, step),)]
        if array.size <= MAX_ELEMENTS:
            m.add(f"unfold {dim} {size} {step}", p.tensor.unfold(dim, size, step), array, p.dtype)


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
            m.add(f"split {size} {dim} part {i}", parts[i], p.array[key], p.dtype)


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
    m.add(f"view {sizes}", p.tensor.view(sizes), array, p.dtype)


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


# ---- writes ---------------------------------------------------------------------------------------------------------
def broadcastable(*arrays: np.ndarray) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        return None


def refuses(call: Callable[[], Any]) -> bool:
    """Whether the call raises the error for sizes, memory or dtypes that do not fit."""
    try:
        call()
    except (RuntimeError, TypeError):
        return True
    return False


def overlaps_itself(array: np.ndarray) -> bool:
    """Whether two elements lie at one address."""
    if array.size < 2:
        return False
    offsets = np.zeros(array.shape, dtype=np.int64)
    for dim, (n, step) in enumerate(zip(array.shape, array.strides, strict=True)):
        index = np.arange(n) * step
        offsets = offsets + index.reshape([n if d == dim else 1 for d in range(array.ndim)])
    return np.unique(offsets).size < array.size


def same_places(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether every element of both lies at one address."""
    return a.ctypes.data == b.ctypes.data and (a.shape, a.strides) == (b.shape, b.strides)


def write(
    m: Machine,
    text: str,
    p: Pair,
    ours: Callable[[], Any],
    expected: Any,
    scale: float = 1.0,
    is_uniform: bool = False,
    read: np.ndarray | None = None,
) -> None:
    """An in-place operation, after which `p` has the values `expected`.

    On expanded memory it must be refused, with nothing changed, unless it `is_uniform`: writes one value everywhere.
    Where it would `read` elements of `p` in other places than it writes them, nothing is defined, and it is left out.
    """
    if read is not None and np.shares_memory(p.array, read) and not same_places(p.array, read):
        return
    if overlaps_itself(p.array) and not is_uniform:
        # Windows that overlap are not detected in general: what a write to them does is not defined.
        expanded = any(
            n > 1 and step == 0 for n, step in zip(p.array.shape, p.array.strides, strict=True)
        )
        assert not expanded or refuses(ours), (
            f"{text} on overlapping memory after: {'; '.join(m.log)}"
        )
        return
    expected = np.array(expected)  # before the memory changes
    if not values.is_tame(values.round_to(expected, p.dtype), p.dtype):
        return  # others' values live in this memory
    ours()
    m.expect(text, p.tensor, np.broadcast_to(expected, p.array.shape), p.dtype, scale)
    m.log.append(text)
    p.array[...] = values.values_of(p.tensor)


@operation
def fresh(m: Machine, c: Choices) -> None:
    shape = [c.one_of([1, 2, 3, 4, 0]) for _ in range(c.below(4))]
    m.new_value(shape, c.below(7), c.one_of(sorted(values.CARRIERS)), c)


@operation
def fill_in_place(m: Machine, c: Choices) -> None:
    p, n = m.pick(c), c.between(0, 3)
    name, ours, number = c.one_of(
        [
            ("fill_", lambda: p.tensor.fill_(n), n),
            ("zero_", lambda: p.tensor.zero_(), 0),
        ]
    )
    write(m, f"{name} {n}", p, ours, np.full(p.array.shape, number), is_uniform=True)


@operation
def copy_in_place(m: Machine, c: Choices) -> None:
    """A source may have memory in common with the target; it is read first."""
    p, q = m.pick(c), m.pick(c)
    if q.array.ndim > p.array.ndim:
        return  # dimensions of size one in front may go there, as in assignments
    if p is q:
        return  # nothing to do, which expanded memory allows
    if broadcastable(p.array, q.array) != p.array.shape:
        assert refuses(lambda: p.tensor.copy_(q.tensor)), f"{p.array.shape} {q.array.shape}"
    elif is_castable(q.array, p.dtype):
        write(
            m,
            "copy_",
            p,
            lambda: p.tensor.copy_(q.tensor),
            values.round_to(np.broadcast_to(q.array, p.array.shape), p.dtype),
        )


def is_castable(array: np.ndarray, dtype: str) -> bool:
    """Whether conversion to `dtype` is defined: floating values must fit an integer type."""
    if values.category(dtype) != 1 or array.dtype.kind not in "fc":
        return True
    array = array.real
    limits = np.iinfo(values.CARRIERS[dtype])
    return bool(
        np.isfinite(array).all()
        and (array >= limits.min).all()
        and (array <= 0.99 * limits.max).all()
    )


@operation
def assign_item(m: Machine, c: Choices) -> None:
    p, n = m.pick(c), c.between(0, 3)
    if p.array.ndim and p.array.shape[0]:
        size = p.array.shape[0]
        key = c.one_of([0, -1, slice(c.below(size), None), slice(None, None, 2), Ellipsis])

        def ours() -> None:
            p.tensor[key] = n

        # Only the part that is written must not overlap itself; the whole tensor is the simpler rule to test.
        if not overlaps_itself(p.array):
            expected = p.array.copy()
            expected[key] = n
            write(m, f"[{key}] = {n}", p, ours, expected)


@operation
def masked_fill_in_place(m: Machine, c: Choices) -> None:
    p, n = m.pick(c, (1, 2)), c.between(0, 3)
    tensor_mask, mask = p.tensor > 0, p.array > 0
    write(
        m,
        f"masked_fill_ {n}",
        p,
        lambda: p.tensor.masked_fill_(tensor_mask, n),
        np.where(mask, np.array(n, p.array.dtype), p.array),
    )
