"""`collections.deque`."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from argand_dynamo.variables.base import Iterator, MethodVariable, Source, Variable, unknown
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.iterators import SequenceIterator

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["DequeVariable"]


class DequeIterator(SequenceIterator):
    """Over a deque, which must not change meanwhile."""

    __slots__ = ("changes", "of")

    def __init__(self, of: DequeVariable) -> None:
        super().__init__(of.items)
        self.of, self.changes = of, of.changes

    def next_item(self, tx: Tracer) -> Variable | None:
        if self.of.changes != self.changes:
            tx.raise_(RuntimeError, "deque mutated during iteration")
        return super().next_item(tx)


class DequeVariable(Variable):
    """A deque; changes of one that has a source are replayed at the end. `items` may hold lazy variables.

    `changes` grows with what Python's iterators take for a change: not with items that are replaced or reversed.
    """

    __slots__ = ("changes", "items", "maxlen")

    def __init__(
        self, items: list[Variable], maxlen: int | None, source: Source | None = None
    ) -> None:
        super().__init__(source)
        self.items = items
        self.maxlen = maxlen
        self.changes = 0

    def python_type(self) -> type:
        return deque

    def describe(self) -> str:
        return f"a deque of {len(self.items)} items"

    def key(self) -> Any:
        return self

    def truth(self, tx: Tracer) -> bool:
        return bool(self.items)

    def length(self, tx: Tracer) -> Variable:
        return Constant(len(self.items))

    def realized(self, tx: Tracer) -> list[Variable]:
        """All items."""
        return [tx.realize(x) for x in self.items]

    def iterate(self, tx: Tracer) -> Iterator:
        return DequeIterator(self)

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        return Constant(any(tx.equal(x, item) for x in self.realized(tx)))

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name == "maxlen":
            return Constant(self.maxlen)
        if not hasattr(deque, name):
            tx.raise_(AttributeError, f"'collections.deque' object has no attribute '{name}'")
        return MethodVariable(self, name)

    def _index(self, tx: Tracer, key: Variable) -> int:
        number = tx.as_index(key)
        if number is None:
            tx.raise_(
                TypeError, f"sequence index must be integer, not '{key.python_type().__name__}'"
            )
        if not -len(self.items) <= number < len(self.items):
            tx.raise_(IndexError, "deque index out of range")
        return number % len(self.items)

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        return tx.realize(self.items[self._index(tx, key)])

    def setitem(self, tx: Tracer, key: Variable, value: Variable) -> None:
        self.items[self._index(tx, key)] = value
        tx.mutated(self)

    def delitem(self, tx: Tracer, key: Variable) -> None:
        del self.items[self._index(tx, key)]
        self.changes += 1
        tx.mutated(self)

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        if operation == "iadd":
            self._extend(tx, other)
            tx.mutated(self)
            return self
        if operation == "add" and isinstance(other, DequeVariable) and not reflected:
            made = DequeVariable([*self.items, *other.items], self.maxlen)
            made._trim()
            return made
        return None

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if not isinstance(other, DequeVariable):
            return None
        return tx.compare(operation, tx.make_tuple(self.items), tx.make_tuple(other.items))

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        method = _METHODS.get(name)
        if method is None or kwargs:
            special = tx.special_method(self, name, args, kwargs)
            if special is not None:
                return special
            unknown(f"method {name!r} of {self.describe()}")
        result = method(self, tx, *args)
        if name not in ("copy", "count", "index"):
            tx.mutated(self)
        return Constant(None) if result is None else result

    def _trim(self, left: bool = True) -> None:
        """Drop what is too much, at the left or at the right."""
        if self.maxlen is not None and len(self.items) > self.maxlen:
            more = len(self.items) - self.maxlen
            del self.items[slice(0, more) if left else slice(self.maxlen, None)]

    def _append(self, tx: Tracer, item: Variable) -> None:
        self.items.append(item)
        self.changes += 1
        self._trim()

    def _appendleft(self, tx: Tracer, item: Variable) -> None:
        self.items.insert(0, item)
        self.changes += 1
        self._trim(left=False)

    def _extend(self, tx: Tracer, items: Variable) -> None:
        added = tx.unpack(items)
        self.items.extend(added)
        self.changes += len(added)
        self._trim()

    def _extendleft(self, tx: Tracer, items: Variable) -> None:
        added = tx.unpack(items)[::-1]
        self.items[:0] = added
        self.changes += len(added)
        self._trim(left=False)

    def _pop(self, tx: Tracer, place: int = -1) -> Variable:
        if not self.items:
            tx.raise_(IndexError, "pop from an empty deque")
        self.changes += 1
        return tx.realize(self.items.pop(place))

    def _popleft(self, tx: Tracer) -> Variable:
        return self._pop(tx, 0)

    def _rotate(self, tx: Tracer, steps: Variable | None = None) -> None:
        count = 1 if steps is None else tx.as_index(steps)
        if count is None:
            tx.raise_(TypeError, "deque.rotate() takes an integer")
        self.changes += len(self.items) > 1
        if self.items:
            count %= len(self.items)
            self.items[:] = self.items[-count:] + self.items[:-count] if count else self.items

    def _insert(self, tx: Tracer, index: Variable, item: Variable) -> None:
        where = tx.as_index(index)
        if where is None:
            unknown("deque.insert at an index that is no integer")
        if self.maxlen is not None and len(self.items) >= self.maxlen:
            tx.raise_(IndexError, "deque already at its maximum size")
        self.items.insert(where, item)
        self.changes += 1

    def _remove(self, tx: Tracer, item: Variable) -> None:
        for i, found in enumerate(self.realized(tx)):
            if tx.equal(found, item):
                del self.items[i]
                self.changes += 1
                return
        if not isinstance(item, Constant):
            unknown("deque.remove of an object that it does not hold")
        tx.raise_(ValueError, f"{item.value!r} is not in deque")

    def _count(self, tx: Tracer, item: Variable) -> Variable:
        return Constant(sum(tx.equal(x, item) for x in self.realized(tx)))

    def _clear(self, tx: Tracer) -> None:
        self.changes += len(self.items)
        self.items.clear()

    def _reverse(self, tx: Tracer) -> None:
        self.items.reverse()

    def _copy(self, tx: Tracer) -> Variable:
        return DequeVariable(list(self.items), self.maxlen)


_METHODS: dict[str, Any] = {
    name: getattr(DequeVariable, f"_{name}")
    for name in (
        "append", "appendleft", "clear", "copy", "count", "extend", "extendleft", "insert", "pop", "popleft",
        "remove", "reverse", "rotate",
    )
}  # fmt: skip
