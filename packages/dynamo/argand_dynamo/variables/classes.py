"""Classes, Python modules, `super()`, and callables that are not written in Python."""

from __future__ import annotations

import enum
import types
from typing import TYPE_CHECKING, Any

from argand_dynamo._C import is_constant
from argand_dynamo.exceptions import break_trace
from argand_dynamo.trust import is_trusted
from argand_dynamo.variables.base import (
    MISSING,
    ExistingObject,
    Iterator,
    MethodVariable,
    Variable,
    is_property,
    unknown,
)
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.iterators import SequenceIterator

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = [
    "BuiltinVariable",
    "ClassVariable",
    "PythonModuleVariable",
    "SuperVariable",
    "UnionVariable",
]


class ClassVariable(ExistingObject):
    """A class."""

    __slots__ = ()
    value: type

    def describe(self) -> str:
        return f"class {self.value.__qualname__}"

    def raw(self) -> Any:
        return self.value

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in ("__name__", "__qualname__", "__module__", "__mro__", "__bases__", "__class__"):
            return tx.from_raw(getattr(self.value, name))
        found = tx.class_attribute(self.value, name)
        if found is None and tx.is_class_attribute(self.value, name):
            return Constant(None)
        if found is None:
            if tx.class_attribute(type(self.value), name) is not None:
                unknown(f"attribute {name!r} of the metaclass of {self.describe()}")
            tx.raise_(
                AttributeError, f"type object '{self.value.__name__}' has no attribute '{name}'"
            )
        if isinstance(found, staticmethod):
            return tx.class_member(self.value, name, found.__func__, "__func__")
        if isinstance(found, classmethod):
            inner = found.__func__
            if not isinstance(inner, types.FunctionType):
                unknown(f"class method {name!r} of {self.describe()}")
            return tx.bind_function(inner, self)
        if isinstance(found, types.FunctionType):
            return tx.class_member(self.value, name, found)
        if isinstance(found, types.WrapperDescriptorType | types.MethodDescriptorType):
            return BuiltinVariable(found)
        if isinstance(found, types.ClassMethodDescriptorType | types.BuiltinFunctionType):
            return BuiltinVariable(getattr(self.value, name))
        if is_property(type(found)) or type(found) in (
            types.MemberDescriptorType,
            types.GetSetDescriptorType,
        ):
            unknown(f"the descriptor {name!r} of {self.describe()}")
        member = tx.class_member(self.value, name, found)
        if not isinstance(self.value, enum.EnumMeta) and not is_trusted(self.value.__module__):
            tx.note_read(member, member.source)
        return member

    def setattr(self, tx: Tracer, name: str, value: Variable) -> None:
        raise break_trace(
            "unknown_operation", f"assignment to attribute {name!r} of {self.describe()}"
        )

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        return tx.construct(self, args, kwargs)

    def iterate(self, tx: Tracer) -> Iterator:
        members = tx.enum_members(self.value)
        if members is None:
            tx.raise_(TypeError, f"'{type(self.value).__name__}' object is not iterable")
        return SequenceIterator(members)

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        members = tx.enum_members(self.value)
        if members is None:
            return _parametrised(tx, self, key)
        name = tx.raw(key)
        if name not in self.value.__members__:  # type: ignore[attr-defined]
            tx.raise_variable(KeyError, [key])
        return tx.from_raw(self.value.__members__[name])  # type: ignore[attr-defined]

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        return tx.call_python(lambda x: x in self.value, [tx.raw(item)], {})  # type: ignore[operator]

    def length(self, tx: Tracer) -> Variable:
        members = tx.enum_members(self.value)
        return super().length(tx) if members is None else Constant(len(members))

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        return None

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        return _union(self.value, operation, other, reflected)


def _parametrised(tx: Tracer, of: ClassVariable | BuiltinVariable, key: Variable) -> Variable:
    """A generic class and its parameters, as list[int]: annotations and `typing.cast` use it."""
    value: Any = of.value
    own = vars(value).get("__class_getitem__") if isinstance(value, type) else None
    maker = getattr(own, "__func__", None)
    if isinstance(maker, types.FunctionType) and type(value) is type:
        tx.class_attribute(value, "__class_getitem__")
        return tx.bind_function(maker, of).call(tx, [key], {})
    if type(value).__module__ not in ("builtins", "typing"):
        unknown(f"subscript of {of.describe()}")
    try:
        return BuiltinVariable(value[tx.raw(key)])
    except TypeError as error:
        tx.raise_(TypeError, *error.args)


class UnionVariable(ExistingObject):
    """`int | str`, into which `isinstance` looks."""

    __slots__ = ()
    value: types.UnionType

    def describe(self) -> str:
        return f"the union {self.value}"

    def raw(self) -> Any:
        return self.value

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        return _union(self.value, operation, other, reflected)


def _union(value: Any, operation: str, other: Variable, reflected: bool) -> Variable | None:
    if operation != "or" or not isinstance(other, ClassVariable | Constant | UnionVariable):
        return None
    if isinstance(other, Constant) and other.value is not None:
        return None
    return UnionVariable(other.value | value if reflected else value | other.value)


class PythonModuleVariable(ExistingObject):
    """An imported module."""

    __slots__ = ()
    value: types.ModuleType

    def describe(self) -> str:
        return f"module {self.value.__name__}"

    def getattr(self, tx: Tracer, name: str) -> Variable:
        return tx.module_attribute(self, name)


class BuiltinVariable(ExistingObject):
    """A function, type or descriptor that is not written in Python; known ones have a handler."""

    __slots__ = ()

    def describe(self) -> str:
        module = getattr(self.value, "__module__", None)
        name = getattr(self.value, "__qualname__", None) or getattr(self.value, "__name__", "?")
        return f"{module}.{name}" if module and module != "builtins" else str(name)

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in ("__name__", "__qualname__", "__module__"):
            return tx.from_raw(getattr(self.value, name))
        if not hasattr(self.value, name):
            tx.raise_(
                AttributeError, f"'{type(self.value).__name__}' object has no attribute '{name}'"
            )
        value = getattr(self.value, name)
        if isinstance(value, type | tuple) or is_constant(value):
            return tx.from_raw(value)
        return MethodVariable(self, name)

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        if type(self.value).__module__ == "typing":
            return _parametrised(tx, self, key)
        return super().getitem(tx, key)

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        return tx.call_builtin(self, args, kwargs)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name == "__call__":
            return self.call(tx, args, kwargs)
        unknown(f"method {name!r} of {self.describe()}")


class SuperVariable(Variable):
    """super(start, object): looks in the classes after `start`."""

    __slots__ = ("of", "start")

    def __init__(self, start: type, of: Variable) -> None:
        self.source = None
        self.start = start
        self.of = of

    def python_type(self) -> type:
        return super

    def describe(self) -> str:
        return f"super of {self.of.describe()}"

    def truth(self, tx: Tracer) -> bool:
        return True

    def getattr(self, tx: Tracer, name: str) -> Variable:
        cls = self.of.value if isinstance(self.of, ClassVariable) else self.of.python_type()
        found, owner = tx.class_attribute_after(cls, self.start, name)
        if found is MISSING:
            tx.raise_(AttributeError, f"'super' object has no attribute '{name}'")
        if found is None:
            return Constant(None)
        if isinstance(found, types.FunctionType):
            if isinstance(self.of, ClassVariable) and name != "__new__":
                return tx.class_member(owner, name, found)
            if name == "__new__":
                return tx.class_member(owner, name, found)
            return tx.bind_function(found, self.of)
        if isinstance(found, classmethod) and isinstance(found.__func__, types.FunctionType):
            target = self.of if isinstance(self.of, ClassVariable) else tx.from_raw(cls)
            return tx.bind_function(found.__func__, target)
        if isinstance(found, staticmethod):
            return tx.class_member(owner, name, found.__func__, "__func__")
        if is_property(type(found)):
            return tx.class_member(owner, name, found.fget, "fget").call(tx, [self.of], {})
        if isinstance(found, types.WrapperDescriptorType | types.MethodDescriptorType):
            return _SuperMethod(found, self.of, owner)
        if isinstance(found, types.BuiltinFunctionType) and name == "__new__":
            return BuiltinVariable(found)
        unknown(f"attribute {name!r} of {self.describe()}")


class _SuperMethod(Variable):
    """A method of a built-in base class, bound to an object of a class derived from it."""

    __slots__ = ("descriptor", "of", "owner")

    def __init__(self, descriptor: Any, of: Variable, owner: type) -> None:
        self.source = None
        self.descriptor = descriptor
        self.of = of
        self.owner = owner

    def describe(self) -> str:
        return f"{self.owner.__name__}.{self.descriptor.__name__} of {self.of.describe()}"

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        return tx.call_builtin(BuiltinVariable(self.descriptor), [self.of, *args], kwargs)
