"""`Variable`: what the tracer knows of one Python object of the traced program."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, NoReturn

from argand_dynamo.exceptions import break_trace

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = [
    "MISSING",
    "ExistingObject",
    "Iterator",
    "LazyVariable",
    "MethodVariable",
    "NotConstantError",
    "Source",
    "Variable",
    "is_property",
    "reachable",
    "unknown",
]

Source = tuple[tuple[Any, ...], ...]


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


MISSING: Any = _Missing()


class NotConstantError(Exception):
    """A variable has no value that is known while tracing."""


def unknown(what: str) -> NoReturn:
    """Break: the tracer does not know this operation."""
    raise break_trace("unknown_operation", what)


def is_property(kind: type) -> bool:
    """Whether descriptors of this class work as properties do: subclasses may add what they like but for that."""
    return kind is property or (
        issubclass(kind, property)
        and all(
            inspect.getattr_static(kind, name) is vars(property)[name]
            for name in ("__get__", "__set__", "__delete__", "fget", "fset")
        )
    )


class Variable:
    """One object. Two variables are the same object of the traced program exactly if they are identical here.

    `source` says where the object is found when the replacement code starts; None for objects made by the trace.
    """

    __slots__ = ("source",)

    def __init__(self, source: Source | None = None) -> None:
        self.source = source

    def python_type(self) -> type:
        """The object's exact type."""
        unknown(f"type of {self.describe()}")

    def describe(self) -> str:
        """For messages."""
        return type(self).__name__

    def raw(self) -> Any:
        """The value as operators and Python functions can take it while tracing: numbers, FakeTensors, lists of those.

        Raises:
            NotConstantError: if there is none.
        """
        raise NotConstantError(self.describe())

    def key(self) -> Any:
        """What stands for the object as a dict key: equal exactly if the objects are equal."""
        try:
            value = self.raw()
            hash(value)
        except (NotConstantError, TypeError):
            return self
        return value

    def real_object(self) -> Any:
        """The object itself, where it exists while tracing; else MISSING."""
        return MISSING

    def truth(self, tx: Tracer) -> bool:
        """bool(object)."""
        unknown(f"truth of {self.describe()}")

    def getattr(self, tx: Tracer, name: str) -> Variable:
        """object.name."""
        unknown(f"attribute {name!r} of {self.describe()}")

    def setattr(self, tx: Tracer, name: str, value: Variable) -> None:
        """object.name = value."""
        unknown(f"assignment to attribute {name!r} of {self.describe()}")

    def delattr(self, tx: Tracer, name: str) -> None:
        """del object.name."""
        unknown(f"deletion of attribute {name!r} of {self.describe()}")

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        """object(*args, **kwargs)."""
        raise break_trace("unknown_function", self.describe())

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        """object.name(*args, **kwargs)."""
        return tx.realize(self.getattr(tx, name)).call(tx, args, kwargs)

    def length(self, tx: Tracer) -> Variable:
        """len(object)."""
        tx.raise_(TypeError, f"object of type '{self.python_type().__name__}' has no len()")

    def iterate(self, tx: Tracer) -> Iterator:
        """iter(object)."""
        unknown(f"iteration over {self.describe()}")

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        """object[key]."""
        unknown(f"item of {self.describe()}")

    def setitem(self, tx: Tracer, key: Variable, value: Variable) -> None:
        """object[key] = value."""
        unknown(f"assignment to an item of {self.describe()}")

    def delitem(self, tx: Tracer, key: Variable) -> None:
        """del object[key]."""
        unknown(f"deletion of an item of {self.describe()}")

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        """item in object."""
        unknown(f"'in' on {self.describe()}")

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        """The operator's method (`operation` as in "add", "iadd"), None for NotImplemented."""
        return None

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        """A rich comparison (`operation` as in "lt"), None for NotImplemented."""
        return None

    def unary(self, tx: Tracer, operation: str) -> Variable:
        """neg, pos or invert."""
        unknown(f"unary {operation} of {self.describe()}")


class ExistingObject(Variable):
    """An object of the process that stands for itself and is true: a class, module, operator or native function."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None) -> None:
        super().__init__(source)
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def key(self) -> Any:
        return self.value

    def real_object(self) -> Any:
        return self.value

    def truth(self, tx: Tracer) -> bool:
        return True


class LazyVariable(Variable):
    """An object that the trace has not looked at: nothing about it is guarded."""

    __slots__ = ("_realized", "value")

    def __init__(self, value: Any, source: Source) -> None:
        self.source = source
        self.value = value
        self._realized: Variable | None = None

    source: Source

    def realize(self, tx: Tracer) -> Variable:
        """The variable of the object's kind; guards what it takes for granted."""
        if self._realized is None:
            self._realized = tx.wrap(self.value, self.source)
        return self._realized

    @property
    def realized(self) -> Variable | None:
        return self._realized

    def real_object(self) -> Any:
        return self.value

    def describe(self) -> str:
        return f"{type(self.value).__name__} object"


class MethodVariable(Variable):
    """A bound method of an object whose type is not written in Python."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Variable, name: str) -> None:
        self.source = None
        self.owner = owner
        self.name = name

    def python_type(self) -> type:
        return type([].append)

    def describe(self) -> str:
        return f"method {self.name!r} of {self.owner.describe()}"

    def truth(self, tx: Tracer) -> bool:
        return True

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name == "__name__":
            return tx.from_raw(self.name)
        if name == "__self__":
            return self.owner
        return super().getattr(tx, name)

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        return self.owner.call_method(tx, self.name, args, kwargs)


class Iterator(Variable):
    """Something that gives one object after the other."""

    __slots__ = ()

    def next_item(self, tx: Tracer) -> Variable | None:
        """The next object, None at the end."""
        raise AssertionError("defined by every iterator")

    def remaining(self, tx: Tracer) -> list[Variable]:
        """What is still to come, where taking it has no effect that the program could see; breaks otherwise."""
        raise break_trace("not_reconstructible", self.describe())

    def python_type(self) -> type:
        return type(iter(()))

    def describe(self) -> str:
        return "an iterator"

    def truth(self, tx: Tracer) -> bool:
        return True

    def iterate(self, tx: Tracer) -> Iterator:
        return self

    def getattr(self, tx: Tracer, name: str) -> Variable:
        return MethodVariable(self, name)

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        while (found := self.next_item(tx)) is not None:
            if tx.equal(found, item):
                return tx.from_raw(True)
        return tx.from_raw(False)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name == "__next__":
            return tx.next(self)
        if name == "__iter__":
            return self
        unknown(f"method {name!r} of {self.describe()}")


def reachable(roots: list[Variable]) -> dict[int, Variable]:
    """The variables that these hold, directly or not, and they themselves, by id."""
    found: dict[int, Variable] = {}
    waiting: list[Any] = list(roots)
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple | list):
            waiting.extend(value)
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, Variable) and id(value) not in found:
            found[id(value)] = value
            for cls in type(value).__mro__:
                waiting.extend(getattr(value, name, None) for name in getattr(cls, "__slots__", ()))
    return found
