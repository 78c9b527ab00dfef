"""Objects of classes written in Python: attributes as Python finds them, without running anything of theirs while tracing."""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
from typing import TYPE_CHECKING, Any

from argand_dynamo.exceptions import Raised, break_trace
from argand_dynamo.variables.base import (
    MISSING,
    Iterator,
    LazyVariable,
    MethodVariable,
    Source,
    Variable,
    is_property,
    unknown,
)
from argand_dynamo.variables.classes import BuiltinVariable
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.dicts import DictVariable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = [
    "DELETED", "EnumVariable", "ExceptionVariable", "HashedObject", "InstanceDictVariable", "ObjectVariable", "hashed_fields",
]  # fmt: skip


class _Deleted(Variable):
    __slots__ = ()


DELETED = _Deleted()
_NATIVE_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
_SLOT_TYPES = (types.MemberDescriptorType, types.GetSetDescriptorType)


@dataclasses.dataclass(frozen=True, slots=True)
class HashedObject:
    """What stands for an object of a dataclass as a key: equal objects have equal fields."""

    cls: type
    fields: tuple[Any, ...]


@functools.cache
def hashed_fields(cls: type) -> tuple[str, ...] | None:
    """The fields by which objects of a frozen dataclass are hashed and compared; None for other classes, and those that say by themselves how."""
    methods: list[Any] = [vars(cls).get(name) for name in ("__hash__", "__eq__")]
    if "__dataclass_fields__" not in vars(cls) or not all(
        isinstance(m, types.FunctionType) and m.__code__.co_filename == "<string>" for m in methods
    ):
        return None
    fields = dataclasses.fields(cls)
    if not vars(cls)["__dataclass_params__"].frozen or any(f.hash not in (None, f.compare) for f in fields):
        return None
    return tuple([f.name for f in fields if f.compare])


class ObjectVariable(Variable):
    """An object. `value` is MISSING for one that the trace has made; `overlay` holds attributes that the trace has set (DELETED: taken away)."""

    __slots__ = ("cls", "new_args", "overlay", "value")

    def __init__(
        self, cls: type, value: Any = MISSING, source: Source | None = None, new_args: Any = ()
    ) -> None:
        self.cls = cls
        self.value = value
        self.source = source
        self.overlay: dict[str, Variable] = {}
        # Arguments of __new__ for an object that the trace has made.
        self.new_args: list[Variable] = list(new_args)

    def python_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"{self.cls.__qualname__} object"

    def real_object(self) -> Any:
        return self.value

    def key(self) -> Any:
        hashing: Any = self.cls.__hash__
        if hashing is object.__hash__ or isinstance(self.value, type):
            return self
        unknown(f"hash of {self.describe()}")

    # Attributes ------------------------------------------------------------------------------

    def instance_attribute(self, tx: Tracer, name: str) -> Variable | None:
        """The entry of the instance dict, None if there is none."""
        found = self.overlay.get(name)
        if found is not None:
            return None if found is DELETED else tx.realize(found)
        if self.value is MISSING:
            return None
        fields = getattr(self.value, "__dict__", None)
        if fields is None:
            return None
        if name in fields:
            if self.source is None:
                return tx.from_raw(fields[name])
            return tx.wrap(fields[name], (*self.source, ("instance_dict", name)))
        if self.source is not None:
            tx.guard(self.source, "NO_ATTR", name)
        return None

    def has_instance_dict(self) -> bool:
        """Whether the object has a __dict__ at all."""
        return bool(self.cls.__dictoffset__)

    def getattr(self, tx: Tracer, name: str) -> Variable:
        refused = None
        try:
            if tx.plain_lookup(self.cls):
                found = self.find_attribute(tx, name)
            else:
                finder = tx.class_attribute(self.cls, "__getattribute__")
                if not isinstance(finder, types.FunctionType):
                    unknown(f"attribute of {self.describe()}, which defines __getattribute__")
                found = tx.bind_function(finder, self).call(tx, [Constant(name)], {})
        except Raised as raised:
            if not issubclass(raised.variable.cls, AttributeError):
                raise
            found, refused = None, raised
        return self.missing_attribute(tx, name, refused) if found is None else found

    def find_attribute(self, tx: Tracer, name: str) -> Variable | None:
        """object.__getattribute__(self, name); None if there is no such attribute."""
        if name == "__class__":
            return tx.from_raw(self.cls)
        if name == "__dict__" and self.has_instance_dict():
            return InstanceDictVariable(self)
        found = tx.class_attribute(self.cls, name)
        if found is not None:
            kind = type(found)
            if is_property(kind):
                if found.fget is None:
                    tx.raise_(
                        AttributeError,
                        f"property {name!r} of {self.cls.__name__!r} object has no getter",
                    )
                return tx.class_member(self.cls, name, found.fget, "fget").call(tx, [self], {})
            if kind in _SLOT_TYPES:
                return self._slot(tx, name)
            if hasattr(kind, "__set__") and hasattr(kind, "__get__"):
                return self._descriptor(tx, found, name)
        own = self.instance_attribute(tx, name)
        if own is not None:
            return own
        if type(found) is functools.cached_property:
            function = tx.class_member(self.cls, name, found.func, "func")
            value = function.call(tx, [self], {})
            self.overlay[name] = value
            tx.mutated(self)
            return value
        if found is not None:
            if hasattr(type(found), "__get__") and not isinstance(
                found, types.FunctionType | staticmethod | classmethod
            ):
                bound = tx.bind_special(self, found, name)
                return self._descriptor(tx, found, name) if bound is None else bound
            return tx.bind_class_attribute(self, found, name)
        if tx.is_class_attribute(self.cls, name):
            return Constant(None)
        return None

    def missing_attribute(self, tx: Tracer, name: str, refused: Raised | None = None) -> Variable:
        """What `__getattr__` gives, or an AttributeError: the one that a property or `__getattribute__` has raised."""
        fallback = tx.class_attribute(self.cls, "__getattr__")
        if isinstance(fallback, types.FunctionType):
            return tx.bind_function(fallback, self).call(tx, [Constant(name)], {})
        if isinstance(fallback, _NATIVE_METHODS):  # as `__getattr__ = dict.get`
            return BuiltinVariable(fallback).call(tx, [self, Constant(name)], {})
        if refused is not None:
            raise refused
        tx.raise_(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")

    def _slot(self, tx: Tracer, name: str) -> Variable | None:
        if name in self.overlay:
            found = self.overlay[name]
            return None if found is DELETED else tx.realize(found)
        value = MISSING if self.value is MISSING else getattr(self.value, name, MISSING)
        if value is MISSING:
            if self.source is not None:
                unknown(f"the empty slot {name!r} of {self.describe()}")
            return None
        if self.source is None:
            return tx.from_raw(value)
        return tx.wrap(value, (*self.source, ("attr", name)))

    def _descriptor(self, tx: Tracer, found: Any, name: str) -> Variable:
        getter = tx.class_attribute(type(found), "__get__")
        if not isinstance(getter, types.FunctionType) or self.cls_source(tx) is None:
            unknown(f"descriptor {name!r} of {self.describe()}")
        descriptor = tx.class_member(self.cls, name, found)
        return tx.bind_function(getter, descriptor).call(tx, [self, tx.from_raw(self.cls)], {})

    def cls_source(self, tx: Tracer) -> Source | None:
        """A path to the object's class."""
        return tx.class_source(self.cls)

    def setattr(self, tx: Tracer, name: str, value: Variable) -> None:
        setter = tx.class_attribute(self.cls, "__setattr__")
        if isinstance(setter, types.FunctionType):
            tx.bind_function(setter, self).call(tx, [Constant(name), value], {})
            return
        if isinstance(setter, _NATIVE_METHODS) and setter.__name__ != "__setattr__":
            BuiltinVariable(setter).call(tx, [self, Constant(name), value], {})
            return
        self.store(tx, name, value)

    def store(self, tx: Tracer, name: str, value: Variable) -> None:
        """object.__setattr__(self, name, value)"""
        found = tx.class_attribute(self.cls, name)
        if is_property(type(found)):
            if found.fset is None:
                tx.raise_(
                    AttributeError,
                    f"property {name!r} of {self.cls.__name__!r} object has no setter",
                )
            tx.class_member(self.cls, name, found.fset, "fset").call(tx, [self, value], {})
            return
        if found is not None and type(found) not in _SLOT_TYPES and hasattr(type(found), "__set__"):
            setter = tx.class_attribute(type(found), "__set__")
            if not isinstance(setter, types.FunctionType) or self.cls_source(tx) is None:
                unknown(f"assignment through the descriptor {name!r} of {self.describe()}")
            descriptor = tx.class_member(self.cls, name, found)
            tx.bind_function(setter, descriptor).call(tx, [self, value], {})
            return
        if found is None and not self.has_instance_dict():
            tx.raise_(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")
        if type(found) is types.GetSetDescriptorType:
            unknown(f"assignment to {name!r} of {self.describe()}")
        self.overlay[name] = value
        tx.mutated(self)

    def delattr(self, tx: Tracer, name: str) -> None:
        remover = tx.class_attribute(self.cls, "__delattr__")
        if isinstance(remover, types.FunctionType):
            tx.bind_function(remover, self).call(tx, [Constant(name)], {})
            return
        if isinstance(remover, _NATIVE_METHODS) and remover.__name__ != "__delattr__":
            BuiltinVariable(remover).call(tx, [self, Constant(name)], {})
            return
        self.remove(tx, name)

    def remove(self, tx: Tracer, name: str) -> None:
        """object.__delattr__(self, name)"""
        found = tx.class_attribute(self.cls, name)
        if is_property(type(found)):
            if found.fdel is None:
                tx.raise_(
                    AttributeError,
                    f"property {name!r} of {self.cls.__name__!r} object has no deleter",
                )
            tx.class_member(self.cls, name, found.fdel, "fdel").call(tx, [self], {})
            return
        if tx.class_attribute(self.cls, name) is not None and not self.has_instance_dict():
            unknown(f"deletion of the slot {name!r}")
        if self.instance_attribute(tx, name) is None:
            tx.raise_(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")
        self.overlay[name] = DELETED
        tx.mutated(self)

    # Special methods -------------------------------------------------------------------------

    def special(self, tx: Tracer, name: str) -> Variable | None:
        """The bound special method if it is written in Python, None if the class has none."""
        found = tx.class_attribute(self.cls, name)
        if found is None:
            return None
        if isinstance(found, types.FunctionType):
            return tx.bind_function(found, self)
        if isinstance(found, staticmethod | classmethod):
            return tx.bind_class_attribute(self, found, name)
        if getattr(object, name, None) is found:
            return None
        unknown(f"{name} of {self.describe()}")

    def truth(self, tx: Tracer) -> bool:
        method = self.special(tx, "__bool__")
        if method is not None:
            return tx.truth(method.call(tx, [], {}))
        method = self.special(tx, "__len__")
        return True if method is None else tx.truth(method.call(tx, [], {}))

    def length(self, tx: Tracer) -> Variable:
        method = self.special(tx, "__len__")
        return super().length(tx) if method is None else method.call(tx, [], {})

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        method = self.special(tx, "__call__")
        if method is None:
            tx.raise_(TypeError, f"'{self.cls.__name__}' object is not callable")
        return method.call(tx, args, kwargs)

    def iterate(self, tx: Tracer) -> Iterator:
        method = self.special(tx, "__iter__")
        if method is not None:
            found = tx.realize(method.call(tx, [], {}))
            return found if isinstance(found, Iterator) else _ObjectIterator(found)
        if self.special(tx, "__getitem__") is not None:
            return _ItemIterator(self)
        tx.raise_(TypeError, f"'{self.cls.__name__}' object is not iterable")

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        method = self.special(tx, "__getitem__")
        if method is None:
            tx.raise_(TypeError, f"'{self.cls.__name__}' object is not subscriptable")
        return method.call(tx, [key], {})

    def setitem(self, tx: Tracer, key: Variable, value: Variable) -> None:
        method = self.special(tx, "__setitem__")
        if method is None:
            tx.raise_(TypeError, f"'{self.cls.__name__}' object does not support item assignment")
        method.call(tx, [key, value], {})

    def delitem(self, tx: Tracer, key: Variable) -> None:
        method = self.special(tx, "__delitem__")
        if method is None:
            tx.raise_(TypeError, f"'{self.cls.__name__}' object doesn't support item deletion")
        method.call(tx, [key], {})

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        method = self.special(tx, "__contains__")
        if method is not None:
            return Constant(tx.truth(method.call(tx, [item], {})))
        return self.iterate(tx).contains(tx, item)

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        method = self.special(tx, f"__r{operation}__" if reflected else f"__{operation}__")
        return None if method is None else tx.unless_not_implemented(method.call(tx, [other], {}))

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        method = self.special(tx, f"__{operation}__")
        if method is None and operation == "ne":
            method = self.special(tx, "__eq__")
            if method is None:
                return None
            found = tx.unless_not_implemented(method.call(tx, [other], {}))
            return None if found is None else Constant(not tx.truth(found))
        return None if method is None else tx.unless_not_implemented(method.call(tx, [other], {}))

    def unary(self, tx: Tracer, operation: str) -> Variable:
        method = self.special(tx, f"__{operation}__")
        if method is None:
            tx.raise_(TypeError, f"bad operand type for unary {operation}: '{self.cls.__name__}'")
        return method.call(tx, [], {})


class _ObjectIterator(Iterator):
    """Over an object with a `__next__` of its own."""

    __slots__ = ("of",)

    def __init__(self, of: Variable) -> None:
        self.source = None
        self.of = of

    def next_item(self, tx: Tracer) -> Variable | None:
        return tx.unless_raised(StopIteration, lambda: self.of.call_method(tx, "__next__", [], {}))


class _ItemIterator(Iterator):
    """Over an object with `__getitem__` only."""

    __slots__ = ("index", "of")

    def __init__(self, of: Variable) -> None:
        self.source = None
        self.of = of
        self.index = -1

    def next_item(self, tx: Tracer) -> Variable | None:
        self.index += 1
        return tx.unless_raised(IndexError, lambda: self.of.getitem(tx, Constant(self.index)))


class InstanceDictVariable(Variable):
    """object.__dict__"""

    __slots__ = ("of",)

    def __init__(self, of: ObjectVariable) -> None:
        self.source = None
        self.of = of

    def python_type(self) -> type:
        return dict

    def describe(self) -> str:
        return f"__dict__ of {self.of.describe()}"

    def _name(self, tx: Tracer, key: Variable) -> str:
        name = tx.raw(key)
        if not isinstance(name, str):
            unknown("a key of __dict__ that is no string")
        return name

    def find(self, tx: Tracer, key: Variable) -> Variable | None:
        """The value of a key, None if there is none."""
        return self.of.instance_attribute(tx, self._name(tx, key))

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        found = self.find(tx, key)
        if found is None:
            tx.raise_variable(KeyError, [key])
        return found

    def setitem(self, tx: Tracer, key: Variable, value: Variable) -> None:
        self.of.overlay[self._name(tx, key)] = value
        tx.mutated(self.of)

    def delitem(self, tx: Tracer, key: Variable) -> None:
        self.getitem(tx, key)
        self.of.overlay[self._name(tx, key)] = DELETED
        tx.mutated(self.of)

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        return Constant(self.find(tx, item) is not None)

    def getattr(self, tx: Tracer, name: str) -> Variable:
        return MethodVariable(self, name)

    def _as_dict(self, tx: Tracer) -> DictVariable:
        names: list[str] = []
        if self.of.value is not MISSING:
            names = list(self.of.value.__dict__)
            if self.of.source is not None:
                tx.guard((*self.of.source, ("attr", "__dict__")), "DICT_KEYS", tuple(names))
        names += [name for name in self.of.overlay if name not in names]
        entries: dict[Any, tuple[Variable, Variable]] = {}
        for name in names:
            found = self.of.instance_attribute(tx, name)
            if found is not None:
                entries[name] = (Constant(name), found)
        return DictVariable(entries)

    def truth(self, tx: Tracer) -> bool:
        return self._as_dict(tx).truth(tx)

    def length(self, tx: Tracer) -> Variable:
        return self._as_dict(tx).length(tx)

    def iterate(self, tx: Tracer) -> Iterator:
        return self._as_dict(tx).iterate(tx)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name == "get":
            found = self.find(tx, args[0])
            return found or (args[1] if len(args) > 1 else Constant(None))
        if name == "pop":
            found = self.find(tx, args[0])
            if found is None:
                if len(args) < 2:
                    tx.raise_variable(KeyError, [args[0]])
                return args[1]
            self.delitem(tx, args[0])
            return found
        if name == "setdefault":
            found = self.find(tx, args[0])
            if found is None:
                found = args[1] if len(args) > 1 else Constant(None)
                self.setitem(tx, args[0], found)
            return found
        if name == "update":
            entries: list[tuple[Variable, Variable]] = []
            for other in args:
                entries += tx.pairs(other)
            for key, value in [*entries, *((Constant(k), v) for k, v in kwargs.items())]:
                self.setitem(tx, key, value)
            return Constant(None)
        if name in ("keys", "values", "items", "copy"):
            return self._as_dict(tx).call_method(tx, name, args, kwargs)
        special = tx.special_method(self, name, args, kwargs)
        if special is not None:
            return special
        unknown(f"method {name!r} of {self.describe()}")


class EnumVariable(ObjectVariable):
    """A member of an enumeration."""

    __slots__ = ()

    def __init__(self, value: enum.Enum, source: Source | None = None) -> None:
        super().__init__(type(value), value, source)

    def raw(self) -> Any:
        return self.value

    def key(self) -> Any:
        return self.value

    def truth(self, tx: Tracer) -> bool:
        return bool(self.value)

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in ("value", "name", "_value_", "_name_"):
            return tx.from_raw(getattr(self.value, name))
        return super().getattr(tx, name)

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        if isinstance(self.value, int | str | enum.Flag) and isinstance(
            other, EnumVariable | Constant
        ):
            own: Variable = Constant(self.value)
            return own.binary(tx, operation, Constant(other.value), reflected)
        return super().binary(tx, operation, other, reflected)

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if isinstance(other, EnumVariable | Constant):
            return Constant(self.value).compare(tx, operation, Constant(other.value))
        return None

    def setattr(self, tx: Tracer, name: str, value: Variable) -> None:
        raise break_trace("unknown_operation", f"assignment to {self.describe()}")


class ExceptionVariable(ObjectVariable):
    """An exception that the traced program has made."""

    __slots__ = ("args",)

    def __init__(self, cls: type, args: list[Variable]) -> None:
        super().__init__(cls)
        self.args = args
        self.new_args = args

    def describe(self) -> str:
        shown = ", ".join(a.describe() for a in self.args)
        return f"{self.cls.__name__}({shown})"

    def key(self) -> Any:
        return self

    def truth(self, tx: Tracer) -> bool:
        return True

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name == "args":
            return tx.make_tuple(self.args)
        if name in ("__cause__", "__context__", "__traceback__") and name not in self.overlay:
            return Constant(None)
        if name == "value" and self.cls is StopIteration:
            return self.args[0] if self.args else Constant(None)
        if name == "with_traceback":
            return MethodVariable(self, name)
        return super().getattr(tx, name)

    def setattr(self, tx: Tracer, name: str, value: Variable) -> None:
        self.overlay[name] = value

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name == "with_traceback":
            return self
        return super().call_method(tx, name, args, kwargs)


def lazily(value: Any, source: Source) -> Variable:
    """A variable that guards nothing until it is used."""
    return LazyVariable(value, source)
