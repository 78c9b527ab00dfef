"""Objects of classes that derive from dict or OrderedDict: attributes as those of other objects, and entries."""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict
from typing import TYPE_CHECKING, Any

from argand_dynamo.variables.base import MISSING, LazyVariable, Source, Variable, unknown
from argand_dynamo.variables.classes import BuiltinVariable
from argand_dynamo.variables.dicts import PLAIN_KEYS, DictVariable
from argand_dynamo.variables.functions import BoundMethodVariable
from argand_dynamo.variables.objects import ObjectVariable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["DictObjectVariable", "has_entries"]

_NATIVE = (types.WrapperDescriptorType, types.MethodDescriptorType)
_BASES = (dict, OrderedDict)
_READS = frozenset({"get", "keys", "values", "items", "copy", "__getitem__", "__len__", "__iter__", "__contains__", "__eq__", "__ne__", "__or__", "__reversed__"})  # fmt: skip


def has_entries(cls: type) -> bool:
    """Whether objects of the class are `DictObjectVariable`s."""
    return issubclass(cls, dict) and cls not in _BASES and not issubclass(cls, defaultdict)


class DictObjectVariable(ObjectVariable):
    """An object with entries: `held` is what methods of dict itself see, whatever the class defines over them."""

    __slots__ = ("_held",)

    def __init__(
        self, cls: type, value: Any = MISSING, source: Source | None = None, new_args: Any = ()
    ) -> None:
        super().__init__(cls, value, source, new_args)
        self._held: DictVariable | None = None

    @property
    def base(self) -> type[dict[Any, Any]]:
        """The built-in class."""
        return OrderedDict if issubclass(self.cls, OrderedDict) else dict

    def held(self, tx: Tracer) -> DictVariable:
        """The entries."""
        if self._held is None:
            self._held = self._read(tx)
            self._held.owner = self
        return self._held

    def _read(self, tx: Tracer) -> DictVariable:
        if self.value is MISSING:
            return DictVariable({}, self.base)
        if self.source is None or tx.class_attribute(self.cls, "__iter__") is not vars(self.base)["__iter__"]:  # fmt: skip
            unknown(f"the entries of {self.describe()}")
        keys = tuple(self.base.__iter__(self.value))
        if not all(type(key) in PLAIN_KEYS for key in keys):
            unknown(f"keys of {self.describe()} that are no plain constants")
        tx.guard(self.source, "DICT_KEYS", keys)
        entries: dict[Any, tuple[Variable, Variable]] = {}
        for key in keys:
            item = LazyVariable(
                dict.__getitem__(self.value, key), (*self.source, ("dict_item", key))
            )
            entries[key] = (tx.constant(key), item)
        return DictVariable(entries, self.base, self.source)

    def native(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        """dict.name(self, ...)"""
        held = self.held(tx)
        if name == "__getitem__" and held.find(tx, args[0]) is None:
            missing = tx.class_attribute(self.cls, "__missing__")
            if isinstance(missing, types.FunctionType):
                return tx.bind_function(missing, self).call(tx, args, {})
        if name not in _READS:
            tx.mutated(self)
        if name == "__init__":
            held.merge(tx, tx.make_dict([]) if not args else args[0])
            return held.call_method(tx, "update", [], kwargs)
        plain = [
            arg.held(tx)
            if isinstance(arg, DictObjectVariable) and name in ("__eq__", "__ne__")
            else arg
            for arg in args
        ]
        found = held.call_method(tx, name, plain, kwargs)
        if name == "copy" or found is held:
            unknown(f"{self.base.__name__}.{name} of {self.describe()}")
        return found

    def special(self, tx: Tracer, name: str) -> Variable | None:
        found = tx.class_attribute(self.cls, name)
        if isinstance(found, _NATIVE) and found.__objclass__ in _BASES:
            return BoundMethodVariable(BuiltinVariable(found), self)
        return super().special(tx, name)

    def plain_pairs(self, tx: Tracer) -> list[tuple[Variable, Variable]] | None:
        """What dict(self) holds, if that asks no method of the class."""
        if tx.class_attribute(self.cls, "__iter__") is not dict.__iter__:
            return None
        return list(self.held(tx).entries.values())
