"""`inspect.signature` of functions written in Python: names and kinds of parameters follow from the code, which is guarded."""

from __future__ import annotations

import inspect
import types
from typing import TYPE_CHECKING, Any

from argand_dynamo.builtins import FUNCTION_HANDLERS
from argand_dynamo.variables.base import MISSING, Variable, unknown
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.dicts import DictVariable
from argand_dynamo.variables.functions import BoundMethodVariable, FunctionVariable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["ParameterVariable", "SignatureVariable"]


class ParameterVariable(Variable):
    """An `inspect.Parameter`."""

    __slots__ = ("default", "kind", "name")

    def __init__(self, name: str, kind: Any, default: Variable | None) -> None:
        self.source = None
        self.name = name
        self.kind = kind
        self.default = default

    def python_type(self) -> type:
        return inspect.Parameter

    def describe(self) -> str:
        return f"the parameter {self.name!r} of a signature"

    def truth(self, tx: Tracer) -> bool:
        return True

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in ("name", "kind"):
            return tx.from_raw(getattr(self, name))
        if name == "default" and self.default is not None:
            return tx.realize(self.default)
        if name in ("empty", "default"):
            return tx.from_raw(inspect.Parameter.empty)
        if name in inspect._ParameterKind.__members__:
            return tx.from_raw(inspect._ParameterKind[name])
        return super().getattr(tx, name)


class SignatureVariable(Variable):
    """An `inspect.Signature`."""

    __slots__ = ("parameters",)

    def __init__(self, parameters: list[ParameterVariable]) -> None:
        self.source = None
        entries: dict[Any, tuple[Variable, Variable]] = {
            p.name: (Constant(p.name), p) for p in parameters
        }
        self.parameters = DictVariable(entries, types.MappingProxyType)

    def python_type(self) -> type:
        return inspect.Signature

    def describe(self) -> str:
        return "a signature"

    def truth(self, tx: Tracer) -> bool:
        return True

    def getattr(self, tx: Tracer, name: str) -> Variable:
        return self.parameters if name == "parameters" else super().getattr(tx, name)


def _signature(tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    if len(args) != 1 or kwargs:
        unknown("inspect.signature with these arguments")
    function = tx.realize(args[0])
    skipped = 0
    while True:
        if isinstance(function, BoundMethodVariable):
            function, skipped = tx.realize(function.function), skipped + 1
        if not isinstance(function, FunctionVariable) or _attribute(tx, function, "__signature__"):
            unknown(f"inspect.signature of {args[0].describe()}")
        wrapped = _attribute(tx, function, "__wrapped__")
        if wrapped is None:
            function.guard_defaults(tx)
            found = _parameters(function)
            while skipped and found and found[0].kind is not inspect.Parameter.VAR_POSITIONAL:
                found, skipped = found[1:], skipped - 1
            return SignatureVariable(found)
        function = wrapped


def _attribute(tx: Tracer, function: FunctionVariable, name: str) -> Variable | None:
    if function.value is not MISSING and function.source is None:
        if name in function.value.__dict__:
            unknown(f"{name} of {function.describe()}")
        return None
    found = tx.unless_raised(AttributeError, lambda: function.getattr(tx, name))
    return None if found is None else tx.realize(found)


def _parameters(function: FunctionVariable) -> list[ParameterVariable]:
    code, kinds = function.code, inspect.Parameter
    names, count = code.co_varnames, code.co_argcount
    defaults = function.defaults or []
    first = count - len(defaults)
    found = [
        ParameterVariable(
            name,
            kinds.POSITIONAL_ONLY if i < code.co_posonlyargcount else kinds.POSITIONAL_OR_KEYWORD,
            defaults[i - first] if i >= first else None,
        )
        for i, name in enumerate(names[:count])
    ]
    place = count + code.co_kwonlyargcount
    if code.co_flags & inspect.CO_VARARGS:
        found.append(ParameterVariable(names[place], kinds.VAR_POSITIONAL, None))
        place += 1
    for name in names[count : count + code.co_kwonlyargcount]:
        default = (function.kwdefaults or {}).get(name)
        found.append(ParameterVariable(name, kinds.KEYWORD_ONLY, default))
    if code.co_flags & inspect.CO_VARKEYWORDS:
        found.append(ParameterVariable(names[place], kinds.VAR_KEYWORD, None))
    return found


FUNCTION_HANDLERS[inspect.signature] = _signature
