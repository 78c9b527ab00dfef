"""Dicts and sets."""

from __future__ import annotations

import operator
import types
from collections import OrderedDict, defaultdict
from typing import TYPE_CHECKING, Any

from argand_dynamo.variables.base import (
    MISSING,
    Iterator,
    LazyVariable,
    MethodVariable,
    NotConstantError,
    Source,
    Variable,
    unknown,
)
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.iterators import SequenceIterator

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = [
    "PLAIN_KEYS", "DictVariable", "DictViewVariable", "MappingProxyVariable", "SetVariable",
]  # fmt: skip

# Differs between processes in which the order of sets of text differs.
HASH_OF_TEXT = hash("argand")
# Types of constants that are the same in every process.
PLAIN_KEYS: frozenset[type] = frozenset({str, int, bool, type(None), float, bytes})


def _realized(item: Variable) -> Variable:
    found = item.realized if type(item) is LazyVariable else item
    if found is None:
        raise NotConstantError("an item that was not looked at")
    return found


class DictVariable(Variable):
    """A dict: entries (key, value) by `Variable.key()`; values may be lazy."""

    __slots__ = ("cls", "default_factory", "entries", "owner")

    def __init__(
        self,
        entries: dict[Any, tuple[Variable, Variable]],
        cls: type = dict,
        source: Source | None = None,
        default_factory: Variable | None = None,
    ) -> None:
        self.entries = entries
        self.cls = cls
        self.source = source
        self.default_factory = default_factory
        # The object of a derived class whose entries these are.
        self.owner: Variable | None = None

    def python_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"a {self.cls.__name__} of {len(self.entries)} entries"

    def raw(self) -> Any:
        return {_realized(k).raw(): _realized(v).raw() for k, v in self.entries.values()}

    def key(self) -> Any:
        return self

    def truth(self, tx: Tracer) -> bool:
        return bool(self.entries)

    def length(self, tx: Tracer) -> Variable:
        return Constant(len(self.entries))

    def keys(self, tx: Tracer) -> list[Variable]:
        """The keys in order."""
        return [tx.realize(k) for k, _ in self.entries.values()]

    def iterate(self, tx: Tracer) -> Iterator:
        return SequenceIterator(self.keys(tx))

    def find(self, tx: Tracer, key: Variable) -> Variable | None:
        """The value of a key, None if there is none."""
        entry = self.entries.get(tx.hashed(key))
        return None if entry is None else tx.realize(entry[1])

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        found = self.find(tx, key)
        if found is not None:
            return found
        if self.default_factory is not None:
            made = self.default_factory.call(tx, [], {})
            self.setitem(tx, key, made)
            return made
        tx.raise_variable(KeyError, [key])

    def setitem(self, tx: Tracer, key: Variable, value: Variable) -> None:
        name = tx.hashed(key)
        old = self.entries.get(name)
        self.entries[name] = (key if old is None else old[0], value)
        tx.mutated(self)

    def delitem(self, tx: Tracer, key: Variable) -> None:
        name = tx.hashed(key)
        if name not in self.entries:
            tx.raise_variable(KeyError, [key])
        del self.entries[name]
        tx.mutated(self)

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        return Constant(tx.hashed(item) in self.entries)

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if not hasattr(self.cls, name):
            tx.raise_(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")
        return MethodVariable(self, name)

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        if not isinstance(other, DictVariable) or operation not in ("or", "ior") or reflected:
            return None
        target = self
        if operation == "or":
            target = DictVariable(dict(self.entries), self.cls, None, self.default_factory)
        target.merge(tx, other)
        return target

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if not isinstance(other, DictVariable) or operation not in ("eq", "ne"):
            return None
        if self.cls is OrderedDict and other.cls is OrderedDict:
            same = list(self.entries) == list(other.entries)
        else:
            same = self.entries.keys() == other.entries.keys()
        same = same and all(
            tx.equal(tx.realize(v), tx.realize(other.entries[k][1]))
            for k, (_, v) in self.entries.items()
        )
        return Constant(same is (operation == "eq"))

    def merge(self, tx: Tracer, other: Variable) -> None:
        """update(other)"""
        if isinstance(other, DictVariable):
            for name, (key, value) in other.entries.items():
                old = self.entries.get(name)
                self.entries[name] = (key if old is None else old[0], value)
            tx.mutated(self)
            return
        for key, value in tx.pairs(other):
            self.setitem(tx, key, value)
        tx.mutated(self)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        method = _DICT_METHODS.get(name)
        if method is not None and (not kwargs or name in ("update", "move_to_end", "popitem")):
            result = method(self, tx, *args, **kwargs)
            return Constant(None) if result is None else result
        special = tx.special_method(self, name, args, kwargs)
        if special is not None:
            return special
        unknown(f"method {name!r} of {self.describe()}")

    def _get(self, tx: Tracer, key: Variable, default: Variable | None = None) -> Variable | None:
        found = self.find(tx, key)
        return default if found is None else found

    def _view(self, kind: str) -> Variable:
        return DictViewVariable(self, kind)

    def _keys(self, tx: Tracer) -> Variable:
        return self._view("keys")

    def _values(self, tx: Tracer) -> Variable:
        return self._view("values")

    def _items(self, tx: Tracer) -> Variable:
        return self._view("items")

    def _pop(self, tx: Tracer, key: Variable, default: Variable | None = None) -> Variable:
        entry = self.entries.pop(tx.hashed(key), None)
        if entry is None:
            if default is None:
                tx.raise_variable(KeyError, [key])
            return default
        tx.mutated(self)
        return tx.realize(entry[1])

    def _popitem(self, tx: Tracer, last: Variable | None = None) -> Variable:
        if not self.entries:
            tx.raise_(KeyError, "popitem(): dictionary is empty")
        names = list(self.entries)
        name = names[-1 if last is None or last.truth(tx) else 0]
        key, value = self.entries.pop(name)
        tx.mutated(self)
        return tx.make_tuple([key, value])

    def _setdefault(
        self, tx: Tracer, key: Variable, default: Variable | None = None
    ) -> Variable | None:
        found = self.find(tx, key)
        if found is None:
            found = Constant(None) if default is None else default
            self.setitem(tx, key, found)
        return found

    def _update(self, tx: Tracer, *others: Variable, **entries: Variable) -> None:
        for other in others:
            self.merge(tx, other)
        for name, value in entries.items():
            self.setitem(tx, Constant(name), value)
        tx.mutated(self)

    def _clear(self, tx: Tracer) -> None:
        self.entries.clear()
        tx.mutated(self)

    def _copy(self, tx: Tracer) -> Variable:
        return DictVariable(dict(self.entries), self.cls, None, self.default_factory)

    def _move_to_end(self, tx: Tracer, key: Variable, last: Variable | None = None) -> None:
        name = tx.hashed(key)
        if name not in self.entries:
            tx.raise_variable(KeyError, [key])
        entry = self.entries.pop(name)
        if last is None or last.truth(tx):
            self.entries[name] = entry
        else:
            rest = dict(self.entries)
            self.entries.clear()
            self.entries[name] = entry
            self.entries.update(rest)
        tx.mutated(self)


_DICT_METHODS: dict[str, Any] = {
    "get": DictVariable._get,
    "keys": DictVariable._keys,
    "values": DictVariable._values,
    "items": DictVariable._items,
    "pop": DictVariable._pop,
    "popitem": DictVariable._popitem,
    "setdefault": DictVariable._setdefault,
    "update": DictVariable._update,
    "clear": DictVariable._clear,
    "copy": DictVariable._copy,
    "move_to_end": DictVariable._move_to_end,
}


class DictViewVariable(Variable):
    """dict.keys(), dict.values() or dict.items()."""

    __slots__ = ("kind", "of")

    def __init__(self, of: DictVariable, kind: str) -> None:
        self.source = None
        self.of = of
        self.kind = kind

    def python_type(self) -> type:
        made: dict[str, type] = {
            "keys": type({}.keys()),
            "values": type({}.values()),
            "items": type({}.items()),
        }
        return made[self.kind]

    def describe(self) -> str:
        return f"{self.kind}() of {self.of.describe()}"

    def members(self, tx: Tracer) -> list[Variable]:
        """What the view shows now."""
        if self.kind == "keys":
            return self.of.keys(tx)
        if self.kind == "values":
            return [v for _, v in self.of.entries.values()]
        return [tx.make_tuple([k, v]) for k, v in self.of.entries.values()]

    def truth(self, tx: Tracer) -> bool:
        return bool(self.of.entries)

    def length(self, tx: Tracer) -> Variable:
        return self.of.length(tx)

    def iterate(self, tx: Tracer) -> Iterator:
        return SequenceIterator(self.members(tx))

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        if self.kind == "keys":
            return self.of.contains(tx, item)
        return Constant(any(tx.equal(tx.realize(x), item) for x in self.members(tx)))

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name == "mapping":
            return MappingProxyVariable(self.of)
        return MethodVariable(self, name)

    def as_set(self, tx: Tracer) -> SetVariable:
        """The keys or items as a set."""
        if self.kind == "values":
            unknown("set operations on dict.values()")
        return SetVariable({tx.hashed(x): x for x in self.members(tx)})

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        if operation not in ("and", "or", "sub", "xor"):
            return None
        if isinstance(other, SetVariable):
            right = other
        elif isinstance(other, DictViewVariable):
            right = other._as_operand(tx)
        else:
            right = SetVariable(tx.make_set(tx.unpack(other)).members)
        return self._as_operand(tx).binary(tx, operation, right, reflected)

    def _as_operand(self, tx: Tracer) -> SetVariable:
        made = self.as_set(tx)
        if self.kind == "keys" and self.of.cls is dict:
            made.table = dict.fromkeys(made.members).keys()
        return made

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if isinstance(other, DictViewVariable):
            other = other.as_set(tx)
        return self.as_set(tx).compare(tx, operation, other)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        special = tx.special_method(self, name, args, kwargs)
        if special is not None:
            return special
        return self.as_set(tx).call_method(tx, name, args, kwargs)


_HASH_SOURCE: Source = (("module", __name__), ("attr", "HASH_OF_TEXT"))


class SetVariable(Variable):
    """A set or frozenset: members by `Variable.key()`.

    `table`: a set of these keys with the history of the program's, and so its order; None where that is not known.
    """

    __slots__ = ("cls", "members", "table")

    def __init__(
        self,
        members: dict[Any, Variable],
        cls: type = set,
        source: Source | None = None,
        table: Any = None,
    ) -> None:
        self.members = members
        self.table = table
        self.cls = cls
        self.source = source

    def python_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"a {self.cls.__name__} of {len(self.members)} members"

    def raw(self) -> Any:
        return self.cls(member.raw() for member in self.members.values())

    def key(self) -> Any:
        return frozenset(self.members) if self.cls is frozenset else self

    def truth(self, tx: Tracer) -> bool:
        return bool(self.members)

    def length(self, tx: Tracer) -> Variable:
        return Constant(len(self.members))

    def iterate(self, tx: Tracer) -> Iterator:
        # A set's order follows from hashes and history: of numbers it is the same in every process, of text in this one.
        keys: Any = self.members
        if len(keys) > 1:
            if self.source is not None and id(self) not in tx.changed:
                tx.guard(self.source, "DICT_KEYS", tuple(keys))
            else:
                kinds = {type(key) for key in keys}
                if self.table is None or not kinds <= {int, float, bool, str, bytes}:
                    unknown("the order of a set")
                if not kinds <= {int, float, bool}:
                    tx.guard(_HASH_SOURCE, "EQUALS", HASH_OF_TEXT)
                keys = self.table
        return SequenceIterator([self.members[key] for key in keys])

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        return Constant(tx.hashed(item) in self.members)

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if not hasattr(self.cls, name):
            tx.raise_(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")
        return MethodVariable(self, name)

    def _others(self, tx: Tracer, others: list[Variable]) -> tuple[list[dict[Any, Variable]], Any]:
        """The members of other iterables, and what stands for these in operations on tables; None if one's order is not known."""
        found: list[dict[Any, Variable]] = []
        tables: list[Any] | None = []
        for other in others:
            if isinstance(other, SetVariable):
                members, table = other.members, other.table
            else:
                members = {tx.hashed(item): item for item in tx.unpack(other)}
                exact = isinstance(other, DictVariable) and other.cls is dict
                table = dict.fromkeys(members) if exact else list(members)
            found.append(members)
            tables = None if tables is None or table is None else [*tables, table]
        return found, tables

    def insert(self, tx: Tracer, item: Variable) -> None:
        """add(item)"""
        key = tx.hashed(item)
        self.members.setdefault(key, item)
        if self.table is not None:
            self.table.add(key)
        tx.mutated(self)

    def combine(self, operation: str, theirs: dict[Any, Variable]) -> dict[Any, Variable]:
        """The members of `self operation other`."""
        mine = self.members
        if operation == "or":
            return {**theirs, **mine}
        if operation == "and":
            return {k: v for k, v in mine.items() if k in theirs}
        kept = {k: v for k, v in mine.items() if k not in theirs}
        if operation == "xor":
            kept.update({k: v for k, v in theirs.items() if k not in mine})
        return kept

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        plain = operation.removeprefix("i") if operation != "invert" else operation
        if plain not in ("or", "and", "sub", "xor"):
            return None
        if isinstance(other, DictViewVariable):
            other = other._as_operand(tx)
        if not isinstance(other, SetVariable):
            return None
        left, right = (other, self) if reflected else (self, other)
        found = left.combine(plain, right.members)
        table = None
        if left.table is not None and right.table is not None:
            kind = operation if not reflected and self.cls is set else plain
            table = getattr(operator, _OPERATORS.get(kind, kind))(left.table, right.table)
        if not reflected and operation != plain and self.cls is set:
            self._become(tx, found, table)
            return self
        return SetVariable(found, left.cls, None, table)

    def _become(self, tx: Tracer, members: dict[Any, Variable], table: Any) -> None:
        self.table = table
        self.members.clear()
        self.members.update(members)
        tx.mutated(self)

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if not isinstance(other, SetVariable):
            return None
        a, b = self.members.keys(), other.members.keys()
        made = {
            "eq": a == b, "ne": a != b, "le": a <= b, "lt": a < b, "ge": a >= b, "gt": a > b,
        }  # fmt: skip
        return Constant(made[operation])

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        plain = _SET_OPERATIONS.get(name, _SET_UPDATES.get(name))
        if plain is not None:
            others, tables = self._others(tx, args)
            made = SetVariable(dict(self.members), self.cls)
            for other in others:
                made.members = made.combine(plain, other)
            table, known = self.table, self.table is not None and tables is not None
            result = getattr(table, name)(*tables) if known else None
            if name in _SET_OPERATIONS:
                made.table = result
                return made
            self._become(tx, made.members, table if known else None)
            return Constant(None)
        if name in ("issubset", "issuperset", "isdisjoint"):
            theirs = self._others(tx, args[:1])[0][0].keys()
            mine = self.members.keys()
            return Constant(
                mine <= theirs if name == "issubset"
                else mine >= theirs if name == "issuperset" else mine.isdisjoint(theirs)
            )  # fmt: skip
        if name in ("add", "discard", "remove", "clear", "pop"):
            return self._change(tx, name, args)
        if name == "copy":
            table = self.table if self.table is None or self.cls is frozenset else self.table.copy()
            return SetVariable(dict(self.members), self.cls, None, table)
        special = tx.special_method(self, name, args, kwargs)
        if special is not None:
            return special
        unknown(f"method {name!r} of {self.describe()}")

    def _change(self, tx: Tracer, name: str, args: list[Variable]) -> Variable:
        tx.mutated(self)
        if name == "clear":
            self.members.clear()
        elif name == "pop":
            if len(self.members) != 1:
                unknown("set.pop of a set with other than one member")
        elif name == "add":
            self.insert(tx, args[0])
            return Constant(None)
        elif self.members.pop(tx.hashed(args[0]), None) is None:
            if name == "remove":
                tx.raise_variable(KeyError, [args[0]])
            return Constant(None)
        if self.table is not None:
            getattr(self.table, name)(*map(tx.hashed, args))
        return self.members.popitem()[1] if name == "pop" else Constant(None)


_SET_OPERATIONS = {
    "union": "or", "intersection": "and", "difference": "sub", "symmetric_difference": "xor",
}  # fmt: skip
_SET_UPDATES = {
    "update": "or", "intersection_update": "and", "difference_update": "sub",
    "symmetric_difference_update": "xor",
}  # fmt: skip
_OPERATORS = {"or": "or_", "and": "and_"}
DICT_TYPES: frozenset[type] = frozenset({dict, OrderedDict, defaultdict})


class MappingProxyVariable(Variable):
    """types.MappingProxyType of a dict: reads it."""

    __slots__ = ("of", "value")

    def __init__(
        self, of: DictVariable, value: Any = MISSING, source: Source | None = None
    ) -> None:
        super().__init__(source)
        self.of = of
        self.value = value

    def real_object(self) -> Any:
        return self.value

    def python_type(self) -> type:
        return types.MappingProxyType

    def describe(self) -> str:
        return f"a mappingproxy of {self.of.describe()}"

    def truth(self, tx: Tracer) -> bool:
        return self.of.truth(tx)

    def length(self, tx: Tracer) -> Variable:
        return self.of.length(tx)

    def iterate(self, tx: Tracer) -> Iterator:
        return self.of.iterate(tx)

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        return self.of.getitem(tx, key)

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        return self.of.contains(tx, item)

    def setitem(self, tx: Tracer, key: Variable, value: Variable) -> None:
        tx.raise_(TypeError, "'mappingproxy' object does not support item assignment")

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        if operation == "ior":
            return None
        return self.of.binary(tx, operation, other, reflected)

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        other = other.of if isinstance(other, MappingProxyVariable) else other
        return self.of.compare(tx, operation, other)

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if not hasattr(types.MappingProxyType, name):
            tx.raise_(AttributeError, f"'mappingproxy' object has no attribute '{name}'")
        return MethodVariable(self, name)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name not in ("get", "keys", "values", "items", "copy"):
            unknown(f"method {name!r} of {self.describe()}")
        return self.of.call_method(tx, name, args, kwargs)
