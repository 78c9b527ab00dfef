"""From a real object and the path to it to its variable, and the guards that this takes."""

from __future__ import annotations

import enum
import functools
import gc
import inspect
import re
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import argand_c10
from argand_c10 import Module, Operator, Tensor
from argand_c10._C import OperatorMethod
from argand_c10.module_hooks import HookDict
from argand_dynamo._C import is_constant
from argand_dynamo.exceptions import break_trace
from argand_dynamo.regular_expressions import expression_result, wrap_pattern
from argand_dynamo.tracer_state import TracerState
from argand_dynamo.variables.base import MISSING, LazyVariable, Source, Variable, unknown
from argand_dynamo.variables.caches import CACHED_FUNCTION, CachedFunctionVariable
from argand_dynamo.variables.constant import CONSTANT_TYPES, Constant, SymIntVariable
from argand_dynamo.variables.deques import DequeVariable
from argand_dynamo.variables.dict_objects import DictObjectVariable, has_entries
from argand_dynamo.variables.dicts import (
    PLAIN_KEYS,
    DictVariable,
    MappingProxyVariable,
    SetVariable,
)
from argand_dynamo.variables.functions import BoundMethodVariable, PartialVariable
from argand_dynamo.variables.modules import ModuleVariable
from argand_dynamo.variables.numpy_objects import (
    is_numpy_call,
    is_numpy_value,
    numpy_result,
    wrap_numpy,
)
from argand_dynamo.variables.objects import EnumVariable, ObjectVariable, hashed_fields
from argand_dynamo.variables.sequences import (
    ListVariable,
    RangeVariable,
    SliceVariable,
    TupleVariable,
)
from argand_fx.shapes import FakeTensor, SymSize
from argand_fx.symbolic import SymbolicValue

__all__ = ["Wrapping"]

_DICTS: dict[type, type] = {
    dict: dict,
    OrderedDict: OrderedDict,
    defaultdict: defaultdict,
    HookDict: HookDict,
}
_TENSOR_FUNCTIONS = {n: vars(Tensor)[n] for n in ("__argand_function__", "__torch_function__")}
_LASTING = (types.BuiltinFunctionType, type, types.ModuleType, Operator, OperatorMethod)
_NATIVE_CALLABLES = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType, types.ClassMethodDescriptorType,
)  # fmt: skip


def _is_identity(key: Any) -> bool:
    """Whether a key of a dict is equal to itself alone, whatever its class defines."""
    if isinstance(key, type):
        return type(key).__eq__ is type.__eq__ and type(key).__hash__ is type.__hash__
    if isinstance(key, enum.Enum):
        return type(key).__eq__ is object.__eq__ and type(key).__hash__ is enum.Enum.__hash__
    if isinstance(key, types.BuiltinFunctionType):
        return key.__self__ is None or isinstance(key.__self__, types.ModuleType | type)
    return isinstance(key, types.FunctionType | Operator)


def _settled(value: frozenset[Any]) -> bool:
    """Whether a constant has its order in every process whose hashes are the same: it is filled in another order when its file is loaded."""
    if not all(isinstance(member, int | float) for member in value):
        return True  # such hashes are those of one process
    places = max(8, (sys.getsizeof(value) - sys.getsizeof(frozenset())) // 16)
    return len({hash(member) % places for member in value}) == len(value)


class Wrapping(TracerState):
    """Mixin of `Tracer`."""

    def wrap(self, value: Any, source: Source) -> Variable:
        """The variable of an object that the program reads; the same object gives the same variable."""
        kind = type(value)
        if kind in CONSTANT_TYPES:
            return self._wrap_constant(value, source)
        known = self.known.get(id(value))
        if known is not None:
            if known.source is not None and known.source != source:
                self.guard(source, "ALIAS", known.source)
            return known
        made = self._wrap_new(value, kind, source)
        self.known[id(value)] = made
        self.keep.append(value)
        return made

    def is_mutable_known(self, value: Any) -> bool:
        """Whether the trace has a variable of the object, which it may have changed."""
        return id(value) in self.known

    def constant(self, value: Any) -> Variable:
        """A constant of the code."""
        kind = type(value)
        if kind is tuple or kind is frozenset or kind is slice:
            return self.tx.from_raw(value)
        return Constant(value)

    def _wrap_constant(self, value: Any, source: Source) -> Variable:
        key = (source, "value")
        found = self.constants.get(key)
        if found is None:
            if type(value) is int and (symbol := self.symbol_of(value, source)) is not None:
                self.guard(source, "TYPE", int)  # even if nothing asks for its value
                found = SymIntVariable(symbol, source)
            else:
                self.guard(source, "EQUALS", value)
                found = Constant(value, source)
            self.constants[key] = found
        return found

    def _wrap_new(self, value: Any, kind: type, source: Source) -> Variable:
        maker = _BY_TYPE.get(kind)
        if maker is not None:
            return maker(self, value, source)
        if isinstance(value, Tensor):
            if any(inspect.getattr_static(kind, n) is not f for n, f in _TENSOR_FUNCTIONS.items()):
                unknown(f"a {kind.__name__}, whose class handles operators by itself")
            return self.tx.tensor_input(value, source)
        if isinstance(value, Module):
            self._guard_object(value, source)
            return ModuleVariable(kind, value, source)
        if isinstance(value, type | Operator | OperatorMethod | types.ModuleType):
            self.guard(source, "ID", value)
            if isinstance(value, type):
                self.class_sources.setdefault(value, source)
            return self.tx.lasting(value, source)
        if isinstance(value, enum.Enum):
            self.guard(source, "ID", value)
            if type(value.value) in CONSTANT_TYPES:
                # Another process knows members by their names.
                self.guard((*source, ("instance_dict", "_value_")), "EQUALS", value.value)
            return EnumVariable(value, source)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return self._wrap_sequence(value, source)
        if isinstance(value, _NATIVE_CALLABLES):
            self.guard(source, "ID", value)
            return self.tx.lasting(value, source)
        if kind.__module__ == "typing" and hasattr(value, "__origin__"):
            self.guard(source, "ID", value)
            return self.tx.lasting(value, source)
        wrapped = self.compiled_function(value)
        if wrapped is not None:
            self.guard(source, "ID", value)
            return self.tx.function_of(wrapped, (*source, ("attr", "__wrapped__")))
        if hasattr(kind, "__next__") and not kind.__flags__ & (1 << 9):
            raise break_trace("generator", "an iterator made outside of the traced code")
        if kind.__module__.partition(".")[0] == "numpy":
            if is_numpy_call(value):
                self.guard(source, "ID", value)
                return self.tx.lasting(value, source)
            return wrap_numpy(self.tx, value, source)
        self._guard_object(value, source)
        return (DictObjectVariable if has_entries(kind) else ObjectVariable)(kind, value, source)

    def _guard_object(self, value: Any, source: Source) -> None:
        kind = type(value)
        self.guard(source, "TYPE", kind)
        self.class_sources.setdefault(kind, (*source, ("type",)))

    def _wrap_function(self, value: Any, source: Source) -> Variable:
        self.guard(source, "CODE", value.__code__)
        return self.tx.function_of(value, source)

    def _wrap_method(self, value: Any, source: Source) -> Variable:
        self.guard(source, "TYPE", types.MethodType)
        function = self.wrap(value.__func__, (*source, ("func",)))
        return BoundMethodVariable(
            function, self.wrap(value.__self__, (*source, ("self",))), source
        )

    def _wrap_builtin(self, value: Any, source: Source) -> Variable:
        owner = value.__self__
        if owner is None or isinstance(owner, types.ModuleType | type):
            self.guard(source, "ID", value)
            return self.tx.lasting(value, source)
        self.guard(source, "TYPE", type(value))
        held = self.wrap(owner, (*source, ("attr", "__self__")))
        self.guard((*source, ("attr", "__name__")), "EQUALS", value.__name__)
        return held.getattr(self.tx, value.__name__)

    def _wrap_sequence(self, value: Any, source: Source) -> Variable:
        kind = type(value)
        self.guard(source, "TYPE", kind)
        self.guard(source, "LEN", len(value))
        items: list[Variable] = [
            LazyVariable(item, (*source, ("item", i))) for i, item in enumerate(value)
        ]
        if kind is list:
            return ListVariable(items, list, source)
        return TupleVariable(items, kind, source)

    def _wrap_dict(self, value: Any, source: Source) -> DictVariable:
        kind = type(value)
        self.guard(source, "TYPE", kind)
        by_fields = [key for key in value if not (is_constant(key) or _is_identity(key))]
        if not all(hashed_fields(kind) for kind in map(type, by_fields)):
            unknown(
                "a dict whose keys are neither constants nor classes, functions, enum members or objects of frozen dataclasses"
            )
        if by_fields:  # what the keys hold is guarded, as each is looked at
            self.guard(source, "LEN", len(value))
        else:
            self.guard(source, "DICT_KEYS", tuple(value))
        entries: dict[Any, tuple[Variable, Variable]] = {}
        for i, (key, item) in enumerate(value.items()):
            # Paths go by keys where these are constants, else by places.
            if is_constant(key) and not by_fields:
                name, step = self.tx.constant(key), ("item", key)
            else:
                name, step = self.wrap(key, (*source, ("key", i))), ("value", i)
            entries[self.hashed(name)] = (name, LazyVariable(item, (*source, step)))
        factory = None
        if kind is defaultdict and value.default_factory is not None:
            factory = self.wrap(value.default_factory, (*source, ("attr", "default_factory")))
        return DictVariable(entries, kind, source, factory)

    def _wrap_proxy(self, value: types.MappingProxyType[Any, Any], source: Source) -> Variable:
        self.guard(source, "TYPE", types.MappingProxyType)
        held = (
            *source,
            ("attr", "copy"),
            ("call", ((), ())),
        )  # no path leads to the mapping itself
        copied = value.copy()
        if type(copied) not in _DICTS:
            unknown("a mappingproxy of another mapping than a dict")
        self.keep.append(copied)
        (mapping,) = gc.get_referents(value)
        if any(self.is_state(variable, mapping) for variable in self.tx.changed.values()):
            unknown("a mappingproxy of what the trace has changed")
        self.tx.proxied.append(mapping)
        return MappingProxyVariable(self._wrap_dict(copied, held), value, source)

    def is_state(self, variable: Variable, mapping: Any) -> bool:
        """Whether a mapping from outside is the variable's object, or its `__dict__`."""
        real = variable.real_object()
        known = self.known.get(id(mapping)) is variable
        return known or (real is not MISSING and getattr(real, "__dict__", None) is mapping)

    def _wrap_set(self, value: Any, source: Source) -> Variable:
        if not all(type(item) in PLAIN_KEYS for item in value):
            unknown("a set whose members are no plain constants")
        self.guard(source, "TYPE", type(value))
        self.guard(source, "MEMBERS", tuple(value))
        return SetVariable({item: Constant(item) for item in value}, type(value), source)

    def _wrap_range(self, value: range, source: Source) -> Variable:
        self.guard(source, "TYPE", range)
        for name in ("start", "stop", "step"):
            self.guard((*source, ("attr", name)), "EQUALS", getattr(value, name))
        return RangeVariable(value, source)

    def _wrap_slice(self, value: slice, source: Source) -> Variable:
        self.guard(source, "TYPE", slice)
        names = ("start", "stop", "step")
        return SliceVariable(
            [self.wrap(getattr(value, name), (*source, ("attr", name))) for name in names], source
        )

    def _wrap_partial(self, value: Any, source: Source) -> Variable:
        self.guard(source, "TYPE", functools.partial)
        function = self.wrap(value.func, (*source, ("attr", "func")))
        args = self.wrap(value.args, (*source, ("attr", "args")))
        kwargs = self.wrap(value.keywords, (*source, ("attr", "keywords")))
        named = {self.raw(k): v for k, v in self.pairs(kwargs)}
        return PartialVariable(function, self.unpack(args), named, source)

    def _wrap_cached(self, value: Any, source: Source) -> Variable:
        self.guard(source, "TYPE", type(value))
        return CachedFunctionVariable(
            value, self.wrap(value.__wrapped__, (*source, ("attr", "__wrapped__"))), source
        )

    def _wrap_deque(self, value: Any, source: Source) -> Variable:
        self.guard(source, "TYPE", deque)
        self.guard(source, "LEN", len(value))
        self.guard((*source, ("attr", "maxlen")), "EQUALS", value.maxlen)
        items: list[Variable] = [
            LazyVariable(item, (*source, ("item", i))) for i, item in enumerate(value)
        ]
        return DequeVariable(items, value.maxlen, source)

    def from_special(self, value: Any) -> Variable:
        """The variable of a value without a path, other than a constant, a list or a tuple."""
        kind = type(value)
        if kind is FakeTensor:
            return self.tx.tensor_result(value)
        if kind is SymSize:
            return TupleVariable([self.from_raw(item) for item in value], argand_c10.Size)
        if isinstance(value, SymbolicValue):
            hint = getattr(value, "constant", None)
            if type(hint) is int:
                return Constant(hint)
            return (
                Constant(bool(value))
                if type(value).__name__ == "SymBool"
                else SymIntVariable(value)
            )
        if kind in _DICTS and kind is dict:
            return self.tx.make_dict(
                [(self.from_raw(k), self.from_raw(v)) for k, v in value.items()]
            )
        if kind is set or kind is frozenset:
            made = self.tx.make_set([self.from_raw(item) for item in value], kind)
            made.table = value if kind is frozenset and _settled(value) else None
            return made
        if kind is range:
            return RangeVariable(value)
        if kind is slice:
            return SliceVariable([self.from_raw(x) for x in (value.start, value.stop, value.step)])
        if isinstance(value, enum.Enum):
            return self.remember(value, EnumVariable(value))
        if isinstance(value, (types.FunctionType, *_LASTING, *_NATIVE_CALLABLES)):
            return self.tx.lasting(value, None)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return TupleVariable([self.from_raw(item) for item in value], kind)
        if isinstance(value, Tensor):
            return self.tx.tensor_constant(value)
        if is_numpy_value(value):
            return numpy_result(self.tx, value)
        if kind is re.Pattern or kind is re.Match:
            return expression_result(self.tx, value)
        if is_numpy_call(value):
            return self.tx.lasting(value, None)
        known = self.known.get(id(value))
        if known is not None:
            return known
        unknown(f"a {kind.__name__} object that has no path from the frame's variables")

    def remember(self, value: Any, variable: Variable) -> Variable:
        """The variable known for the object, from now on this one if there was none."""
        self.keep.append(value)
        return self.known.setdefault(id(value), variable)

    def _wrap_cell(self, value: Any, source: Source) -> Variable:
        known = self.cells.get(id(value))
        if known is None:
            known = self.new_cell(value, (*source, ("attr", "cell_contents")))
            known.holder = (source, None)
        return known


_BY_TYPE: dict[type, Callable[[Wrapping, Any, Source], Variable]] = {
    types.FunctionType: Wrapping._wrap_function,
    types.MethodType: Wrapping._wrap_method,
    types.BuiltinFunctionType: Wrapping._wrap_builtin,
    list: Wrapping._wrap_sequence,
    tuple: Wrapping._wrap_sequence,
    argand_c10.Size: Wrapping._wrap_sequence,
    set: Wrapping._wrap_set,
    frozenset: Wrapping._wrap_set,
    range: Wrapping._wrap_range,
    slice: Wrapping._wrap_slice,
    functools.partial: Wrapping._wrap_partial,
    deque: Wrapping._wrap_deque,
    types.CellType: Wrapping._wrap_cell,
    types.MappingProxyType: Wrapping._wrap_proxy,
    re.Pattern: lambda tx, value, source: wrap_pattern(tx.tx, value, source),
    CACHED_FUNCTION: Wrapping._wrap_cached,
    **dict.fromkeys(_DICTS, Wrapping._wrap_dict),
    Tensor: lambda tx, value, source: tx.tensor_input(value, source),
}
