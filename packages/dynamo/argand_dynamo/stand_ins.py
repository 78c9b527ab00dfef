"""Functions of the standard library that are not written in Python, written in Python: they are traced in their place."""

from __future__ import annotations

import bisect
import collections
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from argand_dynamo.builtins import HANDLERS
from argand_dynamo.variables.base import Variable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer


def _place(items: Any, x: Any, lo: int, hi: int | None, key: Any, right: bool) -> int:
    """Where `x`, which is compared with the keys of the items, belongs: after equal ones, or before."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    end = len(items) if hi is None or hi == -1 else hi
    while lo < end:
        middle = (lo + end) // 2
        found = items[middle] if key is None else key(items[middle])
        if (not x < found) if right else found < x:
            lo = middle + 1
        else:
            end = middle
    return lo


def _bisect_left(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> int:
    return _place(a, x, lo, hi, key, False)


def _bisect_right(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> int:
    return _place(a, x, lo, hi, key, True)


def _insort_left(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> None:
    a.insert(_place(a, x if key is None else key(x), lo, hi, key, False), x)


def _insort_right(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Any = None) -> None:
    a.insert(_place(a, x if key is None else key(x), lo, hi, key, True), x)


def _comes_first(a: Any, b: Any, greatest: bool) -> bool:
    return bool(b < a) if greatest else bool(a < b)


def _rise(heap: list[Any], start: int, place: int, greatest: bool) -> None:
    """Let the item at `place` rise towards `start` while it is less than its parent; with `greatest` greater."""
    item = heap[place]
    while place > start:
        parent = (place - 1) // 2
        if not _comes_first(item, heap[parent], greatest):
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = item


def _sink(heap: list[Any], start: int, greatest: bool = False) -> None:
    """Let the item at `start` sink to a leaf along the lesser children, and rise from there: in this order heapq compares."""
    item, place = heap[start], start
    child = 2 * place + 1
    while child < len(heap):
        if child + 1 < len(heap) and not _comes_first(heap[child], heap[child + 1], greatest):
            child += 1
        heap[place] = heap[child]
        place, child = child, 2 * child + 1
    heap[place] = item
    _rise(heap, start, place, greatest)


def _heappush(heap: list[Any], item: Any) -> None:
    heap.append(item)
    _rise(heap, 0, len(heap) - 1, False)


def _heappop(heap: list[Any]) -> Any:
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    if not heap:
        return last
    least, heap[0] = heap[0], last
    _sink(heap, 0)
    return least


def _heapreplace(heap: list[Any], item: Any) -> Any:
    if not heap:
        raise IndexError("index out of range")
    least, heap[0] = heap[0], item
    _sink(heap, 0)
    return least


def _heappushpop(heap: list[Any], item: Any) -> Any:
    return _heapreplace(heap, item) if heap and heap[0] < item else item


def _heapify(heap: list[Any]) -> None:
    for place in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, place)


def _heapify_max(heap: list[Any]) -> None:
    for place in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, place, greatest=True)


def _heapreplace_max(heap: list[Any], item: Any) -> Any:
    if not heap:
        raise IndexError("index out of range")
    first, heap[0] = heap[0], item
    _sink(heap, 0, greatest=True)
    return first


def _count_elements(counts: Any, items: Iterable[Any]) -> None:
    for item in items:
        counts[item] = counts.get(item, 0) + 1


def _takewhile(holds: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if not holds(item):
            return
        yield item


def _dropwhile(holds: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    begun = False
    for item in items:
        begun = begun or not holds(item)
        if begun:
            yield item


def _compress(items: Iterable[Any], chosen: Iterable[Any]) -> Iterator[Any]:
    for item, wanted in zip(items, chosen, strict=False):
        if wanted:
            yield item


_END = object()


def _groupby(items: Iterable[Any], key: Any = None) -> Iterator[tuple[Any, Iterator[Any]]]:
    rest = iter(items)
    ahead: list[Any] = []  # the first item that no group has given yet, and before it its key

    def go_on() -> None:
        ahead.clear()
        item = next(rest, _END)
        if item is not _END:
            ahead.extend((item if key is None else key(item), item))

    def group(of: Any) -> Iterator[Any]:
        while ahead[:1] == [of]:  # the same key, or an equal one
            yield ahead[1]
            go_on()

    go_on()
    while ahead:
        of = ahead[0]
        found = group(of)
        yield of, found
        for _ in found:  # what the program has left of it
            pass


def _tee(items: Iterable[Any], n: int = 2, /) -> tuple[Iterator[Any], ...]:
    if n < 0:
        raise ValueError("n must be >= 0")
    rest = iter(items)
    queues: list[Any] = [collections.deque() for _ in range(n)]

    def copy(queue: Any) -> Iterator[Any]:
        while True:
            if not queue:
                item = next(rest, _END)
                if item is _END:
                    return
                for other in queues:
                    other.append(item)
            yield queue.popleft()

    return tuple([copy(queue) for queue in queues])


def _standing_in(function: Any) -> Callable[..., Variable]:
    def call(tx: Tracer, *args: Variable, **kwargs: Variable) -> Variable:
        found: Variable = tx.function_of(function, None).call(tx, list(args), kwargs)
        return found

    return call


_FUNCTIONS: dict[Any, Any] = {
    bisect.bisect_left: _bisect_left,
    bisect.bisect_right: _bisect_right,
    bisect.insort_left: _insort_left,
    bisect.insort_right: _insort_right,
    heapq.heappush: _heappush,
    heapq.heappop: _heappop,
    heapq.heapreplace: _heapreplace,
    heapq.heappushpop: _heappushpop,
    heapq.heapify: _heapify,
    heapq._heapify_max: _heapify_max,
    heapq._heapreplace_max: _heapreplace_max,  # type: ignore[attr-defined]
    collections._count_elements: _count_elements,  # type: ignore[attr-defined]
    itertools.takewhile: _takewhile,
    itertools.dropwhile: _dropwhile,
    itertools.compress: _compress,
    itertools.groupby: _groupby,
    itertools.tee: _tee,
}
for _native, _function in _FUNCTIONS.items():
    HANDLERS[_native] = _standing_in(_function)


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def _of_lists(native: Callable[..., Any], stand_in: Callable[..., Variable]) -> Any:
    """A function of heapq, which refuses what is no list."""

    def call(tx: Tracer, *args: Variable, **kwargs: Variable) -> Variable:
        cls = args[0].python_type() if args else list
        if not issubclass(cls, list):
            # In the words of the native function, for an object of a class that is named so.
            in_c = cls is collections.deque or not cls.__flags__ & _HEAP_TYPE
            named = cls if in_c else type(cls.__name__, (), {})
            try:
                native(named(), *args[1:])
            except TypeError as error:
                tx.raise_(TypeError, *error.args)
        return stand_in(tx, *args, **kwargs)

    return call


for _native in list(_FUNCTIONS):
    if _native.__module__ == "_heapq":
        HANDLERS[_native] = _of_lists(_native, HANDLERS[_native])
