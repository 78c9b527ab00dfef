"""Calls of classes: `cls(*args, **kwargs)`."""

from __future__ import annotations

import types
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from argand_dynamo.builtins import HANDLERS, PURE, call_handler, handles, pure_call
from argand_dynamo.variables.base import Variable, unknown
from argand_dynamo.variables.classes import ClassVariable
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.dict_objects import DictObjectVariable, has_entries
from argand_dynamo.variables.numpy_objects import call_numpy, is_numpy_call
from argand_dynamo.variables.objects import ExceptionVariable
from argand_dynamo.variables.sequences import TupleVariable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["construct"]


def construct(
    tx: Tracer, cls: ClassVariable, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """cls(*args, **kwargs)"""
    value = cls.value
    handler = HANDLERS.get(value)
    if handler is not None:
        return call_handler(tx, handler, cls, args, kwargs)
    if value in PURE:
        return pure_call(tx, value, args, kwargs)
    if is_numpy_call(value):
        return call_numpy(tx, value, args, kwargs)
    maker = tx.class_attribute(type(value), "__call__")
    if tx.enum_members(value) is not None:
        return tx.call_python(value, [tx.raw(a) for a in args], {})
    if maker is not type.__call__ and type(value).__call__ is not type.__call__:
        unknown(f"construction by the metaclass of {cls.describe()}")
    if issubclass(value, BaseException):
        return _construct_exception(tx, value, args, kwargs)
    if issubclass(value, tuple) and hasattr(value, "_fields"):
        return _construct_named_tuple(tx, cls, args, kwargs)
    new = tx.class_attribute(value, "__new__")
    if isinstance(new, staticmethod):
        made = tx.class_member(value, "__new__", new.__func__, "__func__").call(
            tx, [cls, *args], kwargs
        )
        made = tx.realize(made)
        if not issubclass(made.python_type(), value):
            return made
    elif new is object.__new__ or (
        has_entries(value) and new in (dict.__new__, OrderedDict.__new__)
    ):
        made = _new_object(tx, value)
    else:
        unknown(f"construction of {cls.describe()}")
    init = tx.class_attribute(value, "__init__")
    if isinstance(init, types.FunctionType):
        result = tx.bind_function(init, made).call(tx, args, kwargs)
        if not (isinstance(result, Constant) and result.value is None):
            tx.raise_(
                TypeError, f"__init__() should return None, not '{result.python_type().__name__}'"
            )
    elif isinstance(made, DictObjectVariable) and init in (dict.__init__, OrderedDict.__init__):
        made.native(tx, "__init__", args, kwargs)
    elif init is not object.__init__:
        unknown(f"construction of {cls.describe()}")
    elif (args or kwargs) and new is object.__new__:
        tx.raise_(TypeError, f"{value.__name__}() takes no arguments")
    return made


def _new_object(tx: Tracer, cls: type) -> Variable:
    if getattr(cls, "__abstractmethods__", None):
        unknown(f"construction of the abstract class {cls.__name__}")
    return tx.new_object(cls)


def _construct_exception(
    tx: Tracer, cls: type, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    made = ExceptionVariable(cls, list(args))
    init = tx.class_attribute(cls, "__init__")
    if isinstance(tx.class_attribute(cls, "__new__"), staticmethod):
        unknown(f"construction of the exception {cls.__name__}")
    if isinstance(init, types.FunctionType):
        tx.bind_function(init, made).call(tx, args, kwargs)
    elif kwargs:
        tx.raise_(TypeError, f"{cls.__name__}() takes no keyword arguments")
    return made


def _construct_named_tuple(
    tx: Tracer, cls: ClassVariable, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    value: Any = cls.value
    fields = value._fields
    base = next(c for c in value.__mro__ if "_fields" in c.__dict__)
    if base is not value and any(n in value.__dict__ for n in ("__new__", "__init__")):
        unknown(f"construction of {cls.describe()}")
    if not hasattr(value, "_field_defaults"):
        unknown(f"construction of {cls.describe()}")
    bound = dict(zip(fields, args, strict=False))
    bound.update(kwargs)
    for name in fields:
        if name not in bound and name in value._field_defaults:
            bound[name] = tx.from_raw(value._field_defaults[name])
    if (
        len(args) > len(fields)
        or set(bound) != set(fields)
        or set(kwargs) & set(fields[: len(args)])
    ):
        tx.raise_(TypeError, f"{value.__name__}.__new__() got unfitting arguments")
    return TupleVariable([bound[name] for name in fields], value)


@handles(object.__new__)
def _object_new(tx: Tracer, cls: Variable, *args: Variable, **kwargs: Variable) -> Variable:
    if not isinstance(cls, ClassVariable):
        unknown("object.__new__ of something that is no class")
    return _new_object(tx, cls.value)
