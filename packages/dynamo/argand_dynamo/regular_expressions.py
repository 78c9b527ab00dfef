"""Patterns of `re` on text that is known while tracing, and what they match."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from argand_dynamo.builtins import FUNCTION_HANDLERS
from argand_dynamo.variables.base import ExistingObject, MethodVariable, Source, Variable, unknown
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.iterators import SequenceIterator
from argand_dynamo.variables.objects import EnumVariable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["RegularExpressionVariable", "expression_result", "wrap_pattern"]


class RegularExpressionVariable(ExistingObject):
    """A pattern, or a match that the trace has made."""

    __slots__ = ()

    def describe(self) -> str:
        return f"a {type(self.value).__name__} of the module re"

    def getattr(self, tx: Tracer, name: str) -> Variable:
        try:
            value = getattr(self.value, name)
        except AttributeError as error:
            tx.raise_(AttributeError, *error.args)
        return MethodVariable(self, name) if callable(value) else tx.from_raw(value)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if not hasattr(self.value, name):
            return super().call_method(tx, name, args, kwargs)
        return _call(tx, getattr(self.value, name), args, kwargs)

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        return _call(tx, operator.getitem, [self, key], {})

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if not isinstance(other, RegularExpressionVariable) or operation not in ("eq", "ne"):
            return None
        return Constant(getattr(operator, operation)(self.value, other.value))


def wrap_pattern(tx: Any, value: re.Pattern[Any], source: Source) -> Variable:
    """The variable of a pattern from outside."""
    tx.guard(source, "TYPE", re.Pattern)
    for name in ("pattern", "flags"):
        tx.guard((*source, ("attr", name)), "EQUALS", getattr(value, name))
    return RegularExpressionVariable(value, source)


def expression_result(tx: Any, value: Any) -> Variable:
    """The variable of a pattern or match that the trace has made."""
    made = RegularExpressionVariable(value)
    tx.born(made)
    return made


def _call(
    tx: Any, function: Callable[..., Any], args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    values = [_plain(tx, a) for a in args]
    named = {k: _plain(tx, v) for k, v in kwargs.items()}
    if getattr(function, "__name__", "") == "finditer":
        try:
            found = list(function(*values, **named))
        except TypeError as error:
            tx.raise_(TypeError, *error.args)
        return SequenceIterator([tx.from_raw(match) for match in found])
    found_now: Variable = tx.call_python(function, values, named)
    return found_now


def _plain(tx: Any, variable: Variable) -> Any:
    variable = tx.realize(variable)
    if isinstance(variable, RegularExpressionVariable | EnumVariable):
        return variable.value
    if isinstance(variable, Constant):
        return variable.value
    unknown(f"{variable.describe()} as an argument of a function of the module re")


def _handler(function: Callable[..., Any]) -> Callable[..., Variable]:
    return lambda tx, args, kwargs: _call(tx, function, args, kwargs)


for _function in (
    re.compile, re.escape, re.findall, re.finditer, re.fullmatch, re.match, re.search, re.split, re.sub, re.subn,
):  # fmt: skip
    FUNCTION_HANDLERS[_function] = _handler(_function)
