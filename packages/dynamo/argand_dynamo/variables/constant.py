"""Constants and symbolic integers."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import argand_c10
from argand_dynamo.variables.base import (
    MISSING,
    Iterator,
    MethodVariable,
    Source,
    Variable,
    unknown,
)
from argand_dynamo.variables.iterators import SequenceIterator

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["CONSTANT_TYPES", "Constant", "SymIntVariable"]

CONSTANT_TYPES: frozenset[type] = frozenset(
    {
        int, float, bool, str, bytes, complex, type(None), type(Ellipsis), type(NotImplemented),
        argand_c10.dtype, argand_c10.device, argand_c10.layout, argand_c10.memory_format,
    }
)  # fmt: skip

_BINARY: dict[str, Any] = {
    name: getattr(operator, name)
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "xor", "matmul",
    )
} | {"and": operator.and_, "or": operator.or_}  # fmt: skip
COMPARE: dict[str, Any] = {
    name: getattr(operator, name) for name in ("lt", "le", "eq", "ne", "gt", "ge")
}
# Larger results are not computed while tracing.
_MAX_POWER_BITS = 4096


class Constant(Variable):
    """An immutable value known while tracing."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def python_type(self) -> type:
        return type(self.value)

    def describe(self) -> str:
        text = repr(self.value)
        return text if len(text) < 60 else f"{type(self.value).__name__} constant"

    def raw(self) -> Any:
        return self.value

    def key(self) -> Any:
        return self.value

    def real_object(self) -> Any:
        return self.value

    def truth(self, tx: Tracer) -> bool:
        return bool(self.value)

    def getattr(self, tx: Tracer, name: str) -> Variable:
        value = getattr(self.value, name, MISSING)
        if value is MISSING:
            tx.raise_(
                AttributeError, f"'{type(self.value).__name__}' object has no attribute '{name}'"
            )
        if callable(value) and not isinstance(value, type):
            return MethodVariable(self, name)
        return tx.from_raw(value)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        method = getattr(self.value, name, None)
        if method is None:
            return super().call_method(tx, name, args, kwargs)
        if name == "join" and isinstance(self.value, str | bytes) and len(args) == 1:
            items = [tx.text_of(item) for item in tx.unpack(args[0])]
            return tx.call_python(method, [items], {})
        if name == "format" and isinstance(self.value, str):
            return Constant(
                self.value.format(
                    *[tx.format_value(a) for a in args],
                    **{k: tx.format_value(v) for k, v in kwargs.items()},
                )
            )
        return tx.call_python(
            method, [tx.raw(a) for a in args], {k: tx.raw(v) for k, v in kwargs.items()}
        )

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        tx.raise_(TypeError, f"'{type(self.value).__name__}' object is not callable")

    def length(self, tx: Tracer) -> Variable:
        return tx.call_python(len, [self.value], {})

    def iterate(self, tx: Tracer) -> Iterator:
        if not isinstance(self.value, str | bytes):
            tx.raise_(TypeError, f"'{type(self.value).__name__}' object is not iterable")
        return SequenceIterator([Constant(item) for item in self.value])

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        return tx.call_python(operator.getitem, [self.value, tx.raw(key)], {})

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        return tx.call_python(operator.contains, [self.value, tx.raw(item)], {})

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        function = _BINARY.get(operation)
        if function is None or not isinstance(other, Constant):
            if operation == "mod" and isinstance(self.value, str) and not reflected:
                return tx.call_python(operator.mod, [self.value, tx.format_arguments(other)], {})
            return None
        a, b = (other.value, self.value) if reflected else (self.value, other.value)
        if operation == "pow" and type(a) is int and type(b) is int and b > 0:
            if a.bit_length() * b > _MAX_POWER_BITS:
                unknown("a very large power")
        return tx.call_python(function, [a, b], {})

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if not isinstance(other, Constant):
            return None
        return tx.call_python(COMPARE[operation], [self.value, other.value], {})

    def unary(self, tx: Tracer, operation: str) -> Variable:
        return tx.call_python(getattr(operator, operation), [self.value], {})


# Operations that keep a symbolic integer symbolic; all others fix its value.
_SYMBOLIC = frozenset({"add", "sub", "mul", "floordiv", "mod"})


class SymIntVariable(Variable):
    """An integer that is the same expression, but not the same value, in every call."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def python_type(self) -> type:
        return int

    def describe(self) -> str:
        return f"symbolic integer {self.value}"

    def raw(self) -> Any:
        return self.value

    def key(self) -> Any:
        return int(self.value)

    def fixed(self) -> Constant:
        """The value itself; guards that it stays."""
        return Constant(int(self.value))

    def as_int(self) -> SymIntVariable:
        """int(self)"""
        return self if self.python_type() is int else SymIntVariable(self.value)

    def truth(self, tx: Tracer) -> bool:
        return bool(self.value != 0)

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in ("real", "numerator"):
            return self
        if name == "imag":
            return Constant(0)
        if name == "denominator":
            return Constant(1)
        return self.fixed().getattr(tx, name)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        return self.fixed().call_method(tx, name, args, kwargs)

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        if operation not in _BINARY or not isinstance(other, Constant | SymIntVariable):
            return None
        if other.python_type() not in CONSTANT_TYPES:
            return None  # it knows better
        value = other.value
        integral = isinstance(other, SymIntVariable) or isinstance(value, int)
        if (
            integral
            and operation in _SYMBOLIC
            and not (reflected and operation in ("floordiv", "mod"))
        ):
            if (
                operation in ("floordiv", "mod")
                and not isinstance(other, SymIntVariable)
                and value <= 0
            ):
                return self.fixed().binary(tx, operation, Constant(value))
            function = _BINARY[operation]
            a, b = (value, self.value) if reflected else (self.value, value)
            return tx.from_raw(function(a, b))
        fixed = other.fixed() if isinstance(other, SymIntVariable) else other
        return self.fixed().binary(tx, operation, fixed, reflected)

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if not isinstance(other, Constant | SymIntVariable):
            return None
        if isinstance(other, Constant) and not isinstance(other.value, int):
            return self.fixed().compare(tx, operation, other)
        return Constant(bool(COMPARE[operation](self.value, other.value)))

    def unary(self, tx: Tracer, operation: str) -> Variable:
        if operation == "neg":
            return tx.from_raw(0 - self.value)
        if operation == "pos":
            return self
        return self.fixed().unary(tx, operation)
