"""What Python does with objects in general: operators, comparison, truth, calls of known functions, exceptions."""

from __future__ import annotations

import functools
import operator
from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any, NoReturn

import argand_c10
from argand_dynamo.exceptions import BreakTrace, Raised, break_trace
from argand_dynamo.tracer_state import TracerState
from argand_dynamo.variables.base import (
    MISSING,
    Iterator,
    LazyVariable,
    NotConstantError,
    Variable,
    unknown,
)
from argand_dynamo.variables.constant import CONSTANT_TYPES, Constant, SymIntVariable
from argand_dynamo.variables.deques import DequeVariable
from argand_dynamo.variables.dict_objects import DictObjectVariable
from argand_dynamo.variables.dicts import (
    DictVariable,
    DictViewVariable,
    MappingProxyVariable,
    SetVariable,
)
from argand_dynamo.variables.numpy_objects import NumpyVariable
from argand_dynamo.variables.objects import (
    EnumVariable,
    ExceptionVariable,
    HashedObject,
    ObjectVariable,
    hashed_fields,
)
from argand_dynamo.variables.sequences import (
    ListVariable,
    RangeVariable,
    SequenceVariable,
    SliceVariable,
    TupleVariable,
)
from argand_dynamo.variables.tensor import TensorVariable
from argand_fx.symbolic import SymbolicValue

__all__ = ["Operations"]

_SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "** or pow()",
    "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^", "matmul": "@",
}  # fmt: skip
_COMPARE_SYMBOLS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_SWAPPED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


class Operations(TracerState):
    """Mixin of `Tracer`."""

    def realize(self, variable: Variable) -> Variable:
        """The variable itself, looked at if it is lazy."""
        return variable.realize(self.tx) if type(variable) is LazyVariable else variable

    # Exceptions ------------------------------------------------------------------------------

    def raise_(self, kind: type, *args: Any) -> NoReturn:
        """The traced program raises kind(*args)."""
        raise Raised(ExceptionVariable(kind, [Constant(arg) for arg in args]))

    def raise_variable(self, kind: type, args: list[Variable]) -> NoReturn:
        """The traced program raises kind(*args)."""
        raise Raised(ExceptionVariable(kind, args))

    def unless_raised(self, kind: type, run: Callable[[], Variable]) -> Variable | None:
        """What `run` gives; None if the traced program raises `kind` in it."""
        try:
            return run()
        except Raised as raised:
            if issubclass(raised.variable.cls, kind):
                return None
            raise

    def unless_not_implemented(self, value: Variable) -> Variable | None:
        """None for NotImplemented."""
        if isinstance(value, Constant) and value.value is NotImplemented:
            return None
        return value

    # Values ----------------------------------------------------------------------------------

    def raw(self, variable: Variable) -> Any:
        """The value for operators and functions; breaks where there is none."""
        if type(variable) is LazyVariable:
            variable = variable.realize(self.tx)
        try:
            return variable.raw()
        except NotConstantError:
            pass
        if isinstance(variable, SequenceVariable):
            values = [self.raw(item) for item in variable.items]
            return values if isinstance(variable, ListVariable) else tuple(values)
        if isinstance(variable, DictVariable):
            return {self.raw(k): self.raw(v) for k, v in variable.entries.values()}
        if isinstance(variable, SliceVariable):
            return slice(*[self.raw(part) for part in variable.parts])
        unknown(f"{variable.describe()} as an argument of a function that is not traced")

    def raw_operand(self, variable: Variable) -> Any:
        """The other operand of a tensor's operator: a FakeTensor or number, else MISSING."""
        variable = self.realize(variable)
        if isinstance(variable, TensorVariable):
            return variable.fake
        if isinstance(variable, Constant | SymIntVariable):
            return variable.value
        if isinstance(variable, EnumVariable) and isinstance(variable.value, int | float):
            number = int if isinstance(variable.value, int) else float
            return number(variable.value)
        if isinstance(variable, NumpyVariable) and variable.is_number():
            return variable.raw()
        return MISSING

    def from_raw(self, value: Any) -> Variable:
        """The variable of a value that the trace has computed."""
        kind = type(value)
        if kind in CONSTANT_TYPES:
            return Constant(value)
        if kind is tuple or kind is argand_c10.Size:
            return TupleVariable([self.from_raw(item) for item in value], kind)
        if kind is list:
            return ListVariable([self.from_raw(item) for item in value])
        return self.tx.from_special(value)

    def call_python(self, function: Callable[..., Any], args: list[Any], kwargs: Any) -> Variable:
        """Run a function that depends on its arguments only; what it raises, the traced program raises."""
        args = [int(a) if isinstance(a, SymbolicValue) else a for a in args]  # type: ignore[call-overload]
        try:
            return self.from_raw(function(*args, **kwargs))
        except (BreakTrace, Raised):
            raise
        except Exception as error:
            if type(error).__module__ != "builtins":
                raise break_trace("unknown_function", repr(function), error) from None
            self.raise_(type(error), *error.args)

    def as_index(self, variable: Variable) -> int | None:
        """operator.index(object), None if it has none; a symbol's value is guarded."""
        variable = self.realize(variable)
        if isinstance(variable, SymIntVariable):
            return int(variable.value)
        if isinstance(variable, Constant | EnumVariable) and isinstance(variable.value, int):
            return int(variable.value)
        if isinstance(variable, NumpyVariable) and hasattr(variable.value, "__index__"):
            return int(self.raw(self.call_python(operator.index, [variable.value], {})))
        if isinstance(variable, TensorVariable):
            known = variable.known()
            if known is None:
                raise break_trace("data_dependent_value", "a tensor as index of a Python sequence")
            return int(self.raw(self.call_python(operator.index, [known], {})))
        if isinstance(variable, ObjectVariable):
            method = variable.special(self.tx, "__index__")
            if method is not None:
                return self.as_index(method.call(self.tx, [], {}))
        return None

    def make_tuple(self, items: list[Variable]) -> Variable:
        """A new tuple."""
        return TupleVariable(items)

    def make_dict(self, pairs: list[tuple[Variable, Variable]]) -> Variable:
        """A new dict."""
        made = DictVariable({})
        for key, value in pairs:
            made.setitem(self.tx, key, value)
        return made

    def make_set(self, items: list[Variable], cls: type = set) -> SetVariable:
        """A new set, to which the items are added one by one."""
        made: dict[Any, Variable] = {}
        for item in items:
            made.setdefault(self.hashed(item), item)
        return SetVariable(made, cls, None, set(list(made)))

    def hashed(self, variable: Variable) -> Any:
        """The key of an object in dicts and sets; the traced program raises TypeError for unhashable ones."""
        variable = self.realize(variable)
        if isinstance(variable, Constant):
            return variable.value
        if isinstance(variable, ListVariable | DictVariable | DequeVariable) or (
            isinstance(variable, SetVariable) and variable.cls is set
        ):
            kind = variable.python_type()
            shown = "collections.deque" if kind is deque else kind.__name__
            self.raise_(TypeError, f"unhashable type: '{shown}'")
        if isinstance(variable, TupleVariable):
            return tuple(self.hashed(item) for item in variable.items)
        if isinstance(variable, ObjectVariable) and (names := hashed_fields(variable.cls)):
            for method in ("__hash__", "__eq__"):
                self.tx.class_attribute(variable.cls, method)
            fields = [self.hashed(variable.getattr(self.tx, name)) for name in names]
            return HashedObject(variable.cls, tuple(fields))
        return variable.key()

    # Iteration -------------------------------------------------------------------------------

    def unpack(self, variable: Variable) -> list[Variable]:
        """All objects of an iterable; those of a list or tuple are not looked at."""
        variable = self.realize(variable)
        if isinstance(variable, SequenceVariable):
            return list(variable.items)
        if isinstance(variable, DictViewVariable):
            return variable.members(self.tx)
        iterator = variable.iterate(self.tx)
        found = []
        while (item := iterator.next_item(self.tx)) is not None:
            found.append(item)
            self.check_length(len(found))
        return found

    def pairs(self, variable: Variable) -> list[tuple[Variable, Variable]]:
        """Key and value pairs of a mapping or an iterable of pairs."""
        variable = self.realize(variable)
        if isinstance(variable, MappingProxyVariable):
            variable = variable.of
        if isinstance(variable, DictVariable):
            return list(variable.entries.values())
        if isinstance(variable, DictObjectVariable):
            plain = variable.plain_pairs(self.tx)
            if plain is not None:
                return plain
        if isinstance(variable, ObjectVariable) and variable.special(self.tx, "keys") is not None:
            keys = self.unpack(variable.call_method(self.tx, "keys", [], {}))
            return [(key, variable.getitem(self.tx, self.realize(key))) for key in keys]
        found = []
        for i, item in enumerate(self.unpack(variable)):
            pair = self.unpack(item)
            if len(pair) != 2:
                self.raise_(
                    ValueError,
                    f"dictionary update sequence element #{i} has length {len(pair)}; 2 is required",
                )
            found.append((self.realize(pair[0]), pair[1]))
        return found

    def next(self, iterator: Variable) -> Variable:
        """next(iterator)"""
        if not isinstance(iterator, Iterator):
            kind = iterator.python_type()
            if not hasattr(kind, "__next__"):
                self.raise_(TypeError, f"'{kind.__name__}' object is not an iterator")
            return iterator.call_method(self.tx, "__next__", [], {})
        item = iterator.next_item(self.tx)
        if item is None:
            value = getattr(iterator, "value", None)
            args = [] if value is None or _is_none(value) else [value]
            self.raise_variable(StopIteration, args)
        return item

    def sort(
        self, items: list[Variable], key: Variable | None, reverse: Variable | None
    ) -> list[Variable]:
        """sorted(items, key=key, reverse=reverse)"""
        tx = self

        class Item:
            __slots__ = ("key", "variable")

            def __init__(self, variable: Variable) -> None:
                self.variable = variable
                plain = key is None or _is_none(key)
                self.key = variable
                if not plain and key is not None:
                    self.key = tx.tx.realize(key).call(tx.tx, [variable], {})

            def __lt__(self, other: Item) -> bool:
                return tx.truth(tx.compare("lt", self.key, other.key))

        backwards = reverse is not None and self.truth(reverse)
        return [item.variable for item in sorted(map(Item, items), reverse=backwards)]

    # Operators -------------------------------------------------------------------------------

    def truth(self, variable: Variable) -> bool:
        """bool(object)"""
        return self.realize(variable).truth(self.tx)

    def binary(self, operation: str, a: Variable, b: Variable) -> Variable:
        """a operation b, `operation` as in "add" or "iadd"."""
        a, b = self.realize(a), self.realize(b)
        plain = operation
        if operation[0] == "i" and operation[1:] in _SYMBOLS:
            found = a.binary(self.tx, operation, b)
            if found is not None:
                return found
            plain = operation[1:]
        if isinstance(b, TensorVariable) and not isinstance(a, TensorVariable):
            plain_object = isinstance(a, ObjectVariable) and not isinstance(a, EnumVariable)
            found = None if plain_object else b.binary(self.tx, plain, a, True)
            if found is not None:
                return found
        found = self._reflected_first(plain, a, b)
        if found is None:
            found = a.binary(self.tx, plain, b)
        if found is None:
            found = b.binary(self.tx, plain, a, True)
        if found is not None:
            return found
        self._check_known(a, b, plain)
        symbol = _SYMBOLS[plain] + ("=" if plain != operation else "")
        self.raise_(
            TypeError,
            f"unsupported operand type(s) for {symbol}: "
            f"'{a.python_type().__name__}' and '{b.python_type().__name__}'",
        )

    def _reflected_first(self, operation: str, a: Variable, b: Variable) -> Variable | None:
        """A derived class's reflected method comes before its base's."""
        if isinstance(a, ObjectVariable) and isinstance(b, ObjectVariable):
            if b.cls is not a.cls and issubclass(b.cls, a.cls):
                name = f"__r{operation}__"
                if getattr(b.cls, name, None) is not getattr(a.cls, name, None):
                    return b.binary(self.tx, operation, a, True)
        return None

    def _check_known(self, a: Variable, b: Variable, what: str) -> None:
        """Errors are raised for kinds only of which everything is known."""
        known = (
            Constant,
            SymIntVariable,
            SequenceVariable,
            DictVariable,
            SetVariable,
            RangeVariable,
            ObjectVariable,
        )
        if not (isinstance(a, known) and isinstance(b, known)):
            unknown(f"{what} of {a.describe()} and {b.describe()}")

    def compare(self, operation: str, a: Variable, b: Variable) -> Variable:
        """A rich comparison, `operation` as in "lt"."""
        a, b = self.realize(a), self.realize(b)
        if isinstance(b, TensorVariable) and not isinstance(a, TensorVariable):
            found = b.compare(self.tx, _SWAPPED[operation], a)
        else:
            found = a.compare(self.tx, operation, b)
        if found is None:
            found = b.compare(self.tx, _SWAPPED[operation], a)
        if found is not None:
            return found
        if operation in ("eq", "ne"):
            return Constant(self.identical(a, b) is (operation == "eq"))
        self._check_known(a, b, operation)
        self.raise_(
            TypeError,
            f"'{_COMPARE_SYMBOLS[operation]}' not supported between instances of "
            f"'{a.python_type().__name__}' and '{b.python_type().__name__}'",
        )

    def equal(self, a: Variable, b: Variable) -> bool:
        """Whether containers take two objects for the same: identity, then equality."""
        a, b = self.realize(a), self.realize(b)
        if a is b:
            return True
        if isinstance(a, TensorVariable) and isinstance(b, TensorVariable) and self.identical(a, b):
            return True
        return self.truth(self.compare("eq", a, b))

    def identical(self, a: Variable, b: Variable) -> bool:
        """a is b; what two inputs have in common is guarded."""
        a, b = self.realize(a), self.realize(b)
        if a is b:
            return True
        if isinstance(a, Constant) and isinstance(b, Constant):
            return _same_constant(a.value, b.value)
        if id(a) in self.tx.sealed or id(b) in self.tx.sealed:
            unknown(f"whether {a.describe()} is {b.describe()}, one of which a cache keeps")
        mine, theirs = a.real_object(), b.real_object()
        if mine is MISSING or theirs is MISSING:
            return False
        if mine is theirs:
            return True
        if (
            a.source is not None
            and b.source is not None
            and not isinstance(a, Constant)
            and not isinstance(b, Constant)
        ):
            self.distinct(a, b)
        return False

    def unary(self, operation: str, a: Variable) -> Variable:
        """-a, +a or ~a"""
        return self.realize(a).unary(self.tx, operation)

    # Text ------------------------------------------------------------------------------------

    def text_of(self, variable: Variable) -> Any:
        """A string item for str.join."""
        return self.raw(variable)

    def format_value(self, variable: Variable) -> Any:
        """A value that format() prints as it would print the object."""
        variable = self.realize(variable)
        if isinstance(variable, SymIntVariable):
            return int(variable.value)
        if isinstance(variable, TensorVariable):
            raise break_trace("data_dependent_value", "the text of a tensor")
        if isinstance(variable, TupleVariable | ListVariable):
            values = [self.format_value(item) for item in variable.items]
            if variable.cls in (list, tuple):
                return variable.cls(values)
            if variable.cls is argand_c10.Size:
                return argand_c10.Size(values)
            if hasattr(variable.cls, "_fields"):
                return variable.cls(*values)
        if isinstance(variable, ObjectVariable) and not isinstance(variable, EnumVariable):
            return _Text(self.tx, variable)
        return variable.value if isinstance(variable, NumpyVariable) else self.raw(variable)

    def format_arguments(self, variable: Variable) -> Any:
        """The right operand of str % object."""
        return self.format_value(variable)

    @functools.cached_property
    def max_items(self) -> int:
        """Longest iteration that is unrolled."""
        return 100_000

    def check_length(self, n: int) -> None:
        """Break on endless iterators."""
        if n > self.max_items:
            raise break_trace("too_long", f"more than {self.max_items} items")


class _Text:
    """Formats an object of the traced program by its own methods."""

    def __init__(self, tx: Any, variable: ObjectVariable) -> None:
        self._tx = tx
        self._variable = variable

    def _call(self, *names: str, args: tuple[Any, ...] = ()) -> str:
        cls: Any = self._variable.cls
        own = self._tx.class_attribute(cls, names[0])
        if isinstance(self._variable, ExceptionVariable) and not isinstance(own, FunctionType):
            values = [self._tx.format_value(a) for a in self._variable.args]
            made = cls.__new__(cls, *values)  # whose text is that of its arguments
            return str(made) if names[0] != "__repr__" else repr(made)
        for name in names:
            method = self._variable.special(self._tx, name)
            if method is not None:
                return str(self._tx.raw(method.call(self._tx, [Constant(a) for a in args], {})))
        unknown(f"the text of {self._variable.describe()}")

    def __format__(self, spec: str) -> str:
        if spec:
            return self._call("__format__", args=(spec,))
        return self._call("__str__", "__repr__")

    def __str__(self) -> str:
        return self._call("__str__", "__repr__")

    def __repr__(self) -> str:
        return self._call("__repr__")


def _is_none(variable: Variable) -> bool:
    return isinstance(variable, Constant) and variable.value is None


def _same_constant(a: Any, b: Any) -> bool:
    """Whether equal constants are one object in every implementation; breaks where that is chance."""
    if a is b:
        return True
    if type(a) is not type(b) or a != b:
        return False
    if isinstance(a, bool | type(None) | argand_c10.dtype) or (type(a) is int and -5 <= a <= 256):
        return True
    unknown(f"identity of equal constants, {a!r}")
