"""Lists, tuples (also named ones and sizes), ranges and slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import argand_c10
from argand_dynamo.variables.base import (
    Iterator,
    LazyVariable,
    MethodVariable,
    NotConstantError,
    Source,
    Variable,
    unknown,
)
from argand_dynamo.variables.constant import Constant, SymIntVariable
from argand_dynamo.variables.iterators import ListIterator, SequenceIterator

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["ListVariable", "RangeVariable", "SequenceVariable", "SliceVariable", "TupleVariable"]


class SequenceVariable(Variable):
    """What lists and tuples share. `items` may hold lazy variables."""

    __slots__ = ("cls", "items")

    def __init__(self, items: list[Variable], cls: type, source: Source | None = None) -> None:
        self.items = items
        self.cls = cls
        self.source = source

    def python_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"a {self.cls.__name__} of {len(self.items)} items"

    def item(self, tx: Tracer, index: int) -> Variable:
        """The variable at an index that is in range."""
        found = self.items[index]
        return found.realize(tx) if type(found) is LazyVariable else found

    def realized(self, tx: Tracer) -> list[Variable]:
        """All items."""
        return [x.realize(tx) if type(x) is LazyVariable else x for x in self.items]

    def truth(self, tx: Tracer) -> bool:
        return bool(self.items)

    def length(self, tx: Tracer) -> Variable:
        return Constant(len(self.items))

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if not hasattr(self.cls, name):
            tx.raise_(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")
        return MethodVariable(self, name)

    def make(self, items: list[Variable]) -> Variable:
        """A new sequence of the plain type."""
        raise AssertionError("defined by every sequence")

    def _range(self, tx: Tracer, key: SliceVariable) -> range:
        try:
            return range(*key.fixed(tx).indices(len(self.items)))
        except (TypeError, ValueError) as error:
            tx.raise_(type(error), *error.args)

    def _index(self, tx: Tracer, key: Variable, what: str = "index") -> int:
        number = tx.as_index(key)
        if number is None:
            tx.raise_(
                TypeError,
                f"{self.cls.__name__} indices must be integers or slices, "
                f"not {key.python_type().__name__}",
            )
        n = len(self.items)
        if not -n <= number < n:
            kind = "tuple" if issubclass(self.cls, tuple) else self.cls.__name__
            tx.raise_(IndexError, f"{kind} {what} out of range")
        return number % n

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        if isinstance(key, SliceVariable):
            return self.make([self.items[i] for i in self._range(tx, key)])
        return self.item(tx, self._index(tx, key))

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        return Constant(any(tx.equal(x, item) for x in self.realized(tx)))

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        if operation == "add" and isinstance(other, type(self)) and not reflected:
            return self.make([*self.items, *other.items])
        if operation == "mul":
            count = tx.as_index(other)
            if count is not None:
                return self.make(self.items * count)
        return None

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if not isinstance(other, SequenceVariable) or not (
            isinstance(other, type(self)) or isinstance(self, type(other))
        ):
            return None
        mine, theirs = self.items, other.items
        if operation in ("eq", "ne") and len(mine) != len(theirs):
            return Constant(operation == "ne")
        for a, b in zip(mine, theirs, strict=False):
            a, b = tx.realize(a), tx.realize(b)
            if not tx.equal(a, b):
                if operation in ("eq", "ne"):
                    return Constant(operation == "ne")
                return tx.compare(operation, a, b)
        return tx.compare(operation, Constant(len(mine)), Constant(len(theirs)))

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name == "index" and args and not kwargs:
            bounds = [tx.as_index(a) for a in args[1:]]
            start, stop, _ = slice(*(bounds if len(bounds) == 2 else [*bounds, None])).indices(
                len(self.items)
            )
            for i in range(start, stop):
                if tx.equal(self.item(tx, i), args[0]):
                    return Constant(i)
            what = "list.index(x): x" if isinstance(self, ListVariable) else "tuple.index(x): x"
            text = "x" if not isinstance(args[0], Constant) else repr(args[0].value)
            tx.raise_(
                ValueError,
                f"{text} is not in list"
                if isinstance(self, ListVariable)
                else f"{what} not in tuple",
            )
        if name == "count" and len(args) == 1:
            return Constant(sum(tx.equal(x, args[0]) for x in self.realized(tx)))
        special = tx.special_method(self, name, args, kwargs)
        if special is not None:
            return special
        unknown(f"method {name!r} of {self.describe()}")


class TupleVariable(SequenceVariable):
    """A tuple, a `Size`, or a named tuple."""

    __slots__ = ()

    def __init__(
        self, items: list[Variable], cls: type = tuple, source: Source | None = None
    ) -> None:
        super().__init__(items, cls, source)

    def make(self, items: list[Variable]) -> Variable:
        return TupleVariable(items, argand_c10.Size if self.cls is argand_c10.Size else tuple)

    def raw(self) -> Any:
        values = []
        for item in self.items:
            found = item.realized if type(item) is LazyVariable else item
            if found is None:
                raise NotConstantError(self.describe())
            values.append(found.raw())
        if self.cls is tuple or (
            self.cls is argand_c10.Size and any(type(value) is not int for value in values)
        ):
            return tuple(values)
        return self.cls(values) if self.cls is argand_c10.Size else self.cls(*values)

    def key(self) -> Any:
        keys = []
        for item in self.items:
            found = item.realized if type(item) is LazyVariable else item
            if found is None:
                unknown("a tuple as dict key whose items were not looked at")
            keys.append(found.key())
        return tuple(keys)

    def iterate(self, tx: Tracer) -> Iterator:
        return SequenceIterator(self.items)

    def getattr(self, tx: Tracer, name: str) -> Variable:
        fields = getattr(self.cls, "_fields", None)
        if fields is not None and name in fields:
            return self.item(tx, fields.index(name))
        if self.cls is tuple or self.cls is argand_c10.Size or name in ("_replace", "_asdict"):
            return super().getattr(tx, name)
        found = tx.class_attribute(self.cls, name)
        if found is None:
            tx.raise_(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")
        return tx.bind_class_attribute(self, found, name)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name == "numel" and self.cls is argand_c10.Size:
            total: Variable = Constant(1)
            for item in self.realized(tx):
                total = tx.binary("mul", total, item)
            return total
        fields = getattr(self.cls, "_fields", None)
        if fields is not None:
            if name == "_replace":
                items = dict(zip(fields, self.items, strict=True))
                items.update(kwargs)
                return TupleVariable([items[f] for f in fields], self.cls)
            if name == "_asdict":
                return tx.make_dict(list(zip(map(Constant, fields), self.items, strict=True)))
            if name not in ("index", "count") and not hasattr(tuple, name):
                return self.getattr(tx, name).call(tx, args, kwargs)
        return super().call_method(tx, name, args, kwargs)


class ListVariable(SequenceVariable):
    """A list; changes of one that has a source are replayed at the end."""

    __slots__ = ()

    def __init__(
        self, items: list[Variable], cls: type = list, source: Source | None = None
    ) -> None:
        super().__init__(items, cls, source)

    def make(self, items: list[Variable]) -> Variable:
        return ListVariable(items)

    def raw(self) -> Any:
        values = []
        for item in self.items:
            found = item.realized if type(item) is LazyVariable else item
            if found is None:
                raise NotConstantError(self.describe())
            values.append(found.raw())
        return values

    def key(self) -> Any:
        return self

    def iterate(self, tx: Tracer) -> Iterator:
        return ListIterator(self.items)

    def setitem(self, tx: Tracer, key: Variable, value: Variable) -> None:
        if isinstance(key, SliceVariable):
            new = tx.unpack(value)
            where = key.fixed(tx)
            try:
                self.items[where] = new
            except ValueError as error:
                tx.raise_(ValueError, *error.args)
        else:
            self.items[self._index(tx, key, "assignment index")] = value
        tx.mutated(self)

    def delitem(self, tx: Tracer, key: Variable) -> None:
        if isinstance(key, SliceVariable):
            del self.items[key.fixed(tx)]
        else:
            del self.items[self._index(tx, key, "assignment index")]
        tx.mutated(self)

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        if operation == "iadd":
            self.items.extend(tx.unpack(other))
            tx.mutated(self)
            return self
        if operation == "imul" and (count := tx.as_index(other)) is not None:
            self.items[:] = self.items * count
            tx.mutated(self)
            return self
        return super().binary(tx, operation, other, reflected)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        method = _LIST_METHODS.get(name)
        if method is None or (kwargs and name != "sort"):
            return super().call_method(tx, name, args, kwargs)
        result = method(self, tx, *args, **kwargs)
        if name != "copy":
            tx.mutated(self)
        return Constant(None) if result is None else result

    def _append(self, tx: Tracer, item: Variable) -> None:
        self.items.append(item)

    def _extend(self, tx: Tracer, items: Variable) -> None:
        self.items.extend(tx.unpack(items))

    def _insert(self, tx: Tracer, index: Variable, item: Variable) -> None:
        where = tx.as_index(index)
        if where is None:
            unknown("list.insert at an index that is no integer")
        self.items.insert(where, item)

    def _pop(self, tx: Tracer, index: Variable | None = None) -> Variable:
        if not self.items:
            tx.raise_(IndexError, "pop from empty list")
        where = -1 if index is None else self._index(tx, index, "pop index")
        return tx.realize(self.items.pop(where))

    def _remove(self, tx: Tracer, item: Variable) -> None:
        for i, found in enumerate(self.realized(tx)):
            if tx.equal(found, item):
                del self.items[i]
                return
        tx.raise_(ValueError, "list.remove(x): x not in list")

    def _clear(self, tx: Tracer) -> None:
        self.items.clear()

    def _reverse(self, tx: Tracer) -> None:
        self.items.reverse()

    def _copy(self, tx: Tracer) -> Variable:
        return ListVariable(list(self.items))

    def _sort(
        self, tx: Tracer, key: Variable | None = None, reverse: Variable | None = None
    ) -> None:
        self.items[:] = tx.sort(self.realized(tx), key, reverse)


_LIST_METHODS: dict[str, Any] = {
    "append": ListVariable._append,
    "extend": ListVariable._extend,
    "insert": ListVariable._insert,
    "pop": ListVariable._pop,
    "remove": ListVariable._remove,
    "clear": ListVariable._clear,
    "reverse": ListVariable._reverse,
    "copy": ListVariable._copy,
    "sort": ListVariable._sort,
}


class RangeVariable(Variable):
    """A range; its bounds are fixed numbers."""

    __slots__ = ("value",)

    def __init__(self, value: range, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def python_type(self) -> type:
        return range

    def raw(self) -> Any:
        return self.value

    def truth(self, tx: Tracer) -> bool:
        return bool(self.value)

    def length(self, tx: Tracer) -> Variable:
        return Constant(len(self.value))

    def iterate(self, tx: Tracer) -> Iterator:
        return SequenceIterator([Constant(i) for i in self.value])

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in ("start", "stop", "step"):
            return Constant(getattr(self.value, name))
        return MethodVariable(self, name)

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        where: Any = key.fixed(tx) if isinstance(key, SliceVariable) else tx.as_index(key)
        if where is None:
            unknown("an index into a range that is no integer")
        return tx.call_python(self.value.__getitem__, [where], {})

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        return Constant(tx.raw(item) in self.value)

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if not isinstance(other, RangeVariable) or operation not in ("eq", "ne"):
            return None
        return Constant((self.value == other.value) is (operation == "eq"))

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        special = tx.special_method(self, name, args, kwargs)
        if special is not None:
            return special
        return tx.call_python(getattr(self.value, name), [tx.raw(a) for a in args], {})


class SliceVariable(Variable):
    """A slice; its bounds may be symbolic."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Variable], source: Source | None = None) -> None:
        self.parts = parts
        self.source = source

    def python_type(self) -> type:
        return slice

    def raw(self) -> Any:
        return slice(*[part.raw() for part in self.parts])

    def truth(self, tx: Tracer) -> bool:
        return True

    def fixed(self, tx: Tracer) -> slice:
        """With numbers for symbols, which guards them."""
        bounds: list[Any] = []
        for part in self.parts:
            part = tx.realize(part)
            if isinstance(part, SymIntVariable):
                bounds.append(int(part.value))
            elif isinstance(part, Constant):
                bounds.append(part.value)
            else:
                bounds.append(tx.as_index(part))
        return slice(*bounds)

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in ("start", "stop", "step"):
            return self.parts[("start", "stop", "step").index(name)]
        return MethodVariable(self, name)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name == "indices" and len(args) == 1:
            return tx.from_raw(self.fixed(tx).indices(tx.as_index(args[0]) or 0))
        unknown(f"method {name!r} of a slice")

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if not isinstance(other, SliceVariable) or operation not in ("eq", "ne"):
            return None
        same = all(tx.equal(a, b) for a, b in zip(self.parts, other.parts, strict=True))
        return Constant(same is (operation == "eq"))
