"""Iterators: over sequences, and those of `zip`, `map`, `itertools` and their like."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from argand_dynamo.variables.base import Iterator, LazyVariable, Variable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = [
    "ChainIterator",
    "CountIterator",
    "CycleIterator",
    "EnumerateIterator",
    "FilterIterator",
    "IsliceIterator",
    "ListIterator",
    "MapIterator",
    "RepeatIterator",
    "SequenceIterator",
    "ZipIterator",
]


class SequenceIterator(Iterator):
    """Over objects that are fixed when it is made."""

    __slots__ = ("index", "items")

    def __init__(self, items: list[Variable]) -> None:
        self.source = None
        self.items = items
        self.index = 0

    def next_item(self, tx: Tracer) -> Variable | None:
        if self.index >= len(self.items):
            return None
        item = self.items[self.index]
        self.index += 1
        return item.realize(tx) if type(item) is LazyVariable else item

    def remaining(self, tx: Tracer) -> list[Variable]:
        return self.items[self.index :]


class ListIterator(SequenceIterator):
    """Over a list as it is at each step: `items` is the list's own storage."""

    __slots__ = ()


class _Composed(Iterator):
    """Made of other iterators; what remains is found by going on, which only sequences make safe."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Iterator]) -> None:
        self.source = None
        self.parts = parts

    def remaining(self, tx: Tracer) -> list[Variable]:
        for part in self.parts:
            if not isinstance(part, SequenceIterator | _Composed):
                return super().remaining(tx)
        found = []
        while (item := self.next_item(tx)) is not None:
            found.append(item)
        return found


class ZipIterator(_Composed):
    """`zip(*iterables, strict=...)`."""

    __slots__ = ("fill", "longest", "strict")

    def __init__(
        self,
        parts: list[Iterator],
        strict: bool = False,
        longest: bool = False,
        fill: Variable | None = None,
    ) -> None:
        super().__init__(parts)
        self.strict = strict
        self.longest = longest
        self.fill = fill

    def next_item(self, tx: Tracer) -> Variable | None:
        if not self.parts:
            return None
        found: list[Variable | None] = []
        for i, part in enumerate(self.parts):
            item = part.next_item(tx)
            if item is None and not self.longest:
                if self.strict:
                    self._check_ends(tx, i)
                return None
            found.append(item)
        if self.longest:
            if all(item is None for item in found):
                return None
            fill = self.fill if self.fill is not None else tx.from_raw(None)
            return tx.make_tuple([fill if item is None else item for item in found])
        return tx.make_tuple([item for item in found if item is not None])

    def _check_ends(self, tx: Tracer, ended: int) -> None:
        if ended > 0:
            before = "argument 1" if ended == 1 else f"arguments 1-{ended}"
            tx.raise_(ValueError, f"zip() argument {ended + 1} is shorter than {before}")
        for i, part in enumerate(self.parts[1:], 1):
            if part.next_item(tx) is not None:
                before = "argument 1" if i == 1 else f"arguments 1-{i}"
                tx.raise_(ValueError, f"zip() argument {i + 1} is longer than {before}")


class EnumerateIterator(_Composed):
    """`enumerate(iterable, start)`."""

    __slots__ = ("count",)

    def __init__(self, part: Iterator, start: Variable) -> None:
        super().__init__([part])
        self.count = start

    def next_item(self, tx: Tracer) -> Variable | None:
        item = self.parts[0].next_item(tx)
        if item is None:
            return None
        number = self.count
        self.count = tx.binary("add", number, tx.from_raw(1))
        return tx.make_tuple([number, item])


class ChainIterator(_Composed):
    """`itertools.chain(*iterables)`."""

    __slots__ = ()

    def next_item(self, tx: Tracer) -> Variable | None:
        while self.parts:
            item = self.parts[0].next_item(tx)
            if item is not None:
                return item
            del self.parts[0]
        return None


class IsliceIterator(_Composed):
    """`itertools.islice(iterable, start, stop, step)`."""

    __slots__ = ("position", "step", "stop", "wanted")

    def __init__(self, part: Iterator, start: int, stop: int | None, step: int) -> None:
        super().__init__([part])
        self.position = 0
        self.wanted = start
        self.stop = stop
        self.step = step

    def next_item(self, tx: Tracer) -> Variable | None:
        if self.stop is not None and self.wanted >= self.stop:
            while self.position < self.stop:
                self.position += 1
                if self.parts[0].next_item(tx) is None:
                    break
            return None
        item = None
        while self.position <= self.wanted:
            item = self.parts[0].next_item(tx)
            if item is None:
                return None
            self.position += 1
        self.wanted += self.step
        return item


class MapIterator(Iterator):
    """`map(function, *iterables)`; the function runs at each step."""

    __slots__ = ("call_item", "parts")

    def __init__(self, parts: list[Iterator], call_item: Callable[..., Variable]) -> None:
        self.source = None
        self.parts = parts
        self.call_item = call_item

    def next_item(self, tx: Tracer) -> Variable | None:
        found = []
        for part in self.parts:
            item = part.next_item(tx)
            if item is None:
                return None
            found.append(item)
        return self.call_item(tx, found)


class FilterIterator(Iterator):
    """`filter(function, iterable)`, and with `keep=False` `itertools.filterfalse`."""

    __slots__ = ("keep", "part", "test")

    def __init__(self, part: Iterator, test: Callable[..., bool], keep: bool = True) -> None:
        self.source = None
        self.part = part
        self.test = test
        self.keep = keep

    def next_item(self, tx: Tracer) -> Variable | None:
        while (item := self.part.next_item(tx)) is not None:
            if self.test(tx, item) is self.keep:
                return item
        return None


class CountIterator(Iterator):
    """`itertools.count(start, step)`."""

    __slots__ = ("step", "value")

    def __init__(self, start: Variable, step: Variable) -> None:
        self.source = None
        self.value = start
        self.step = step

    def next_item(self, tx: Tracer) -> Variable | None:
        value = self.value
        self.value = tx.binary("add", value, self.step)
        return value


class RepeatIterator(Iterator):
    """`itertools.repeat(object, times)`."""

    __slots__ = ("item", "times")

    def __init__(self, item: Variable, times: int | None) -> None:
        self.source = None
        self.item = item
        self.times = times

    def next_item(self, tx: Tracer) -> Variable | None:
        if self.times is None:
            return self.item
        self.times -= 1
        return self.item if self.times >= 0 else None


class CycleIterator(Iterator):
    """`itertools.cycle(iterable)`."""

    __slots__ = ("index", "part", "saved")

    def __init__(self, part: Iterator) -> None:
        self.source = None
        self.part: Any = part
        self.saved: list[Variable] = []
        self.index = 0

    def next_item(self, tx: Tracer) -> Variable | None:
        if self.part is not None:
            item = self.part.next_item(tx)
            if item is not None:
                self.saved.append(item)
                return item  # type: ignore[no-any-return]
            self.part = None
        if not self.saved:
            return None
        item = self.saved[self.index % len(self.saved)]
        self.index += 1
        return item
