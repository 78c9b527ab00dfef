"""What the tracer knows of `operator`, `math`, `functools`, `itertools`, `collections` and of Argand's own native functions."""

from __future__ import annotations

import collections
import copy
import copyreg
import functools
import inspect
import itertools
import logging
import math
import operator
import os
import sys
import threading
import types
import typing
import warnings
from typing import TYPE_CHECKING, Any

import argand_autograd
import argand_c10
from argand_aten import _C as aten_native
from argand_aten.contraction_path import contraction_path
from argand_autograd import _C as autograd_native
from argand_autograd.batching import is_entry, runs_at_once
from argand_autograd.differentiate import run_keeping_graphs
from argand_autograd.vmap import begin_draws, shared_result
from argand_c10 import _C as native
from argand_c10 import Tensor, as_tensor
from argand_c10.tracing import is_compiling, is_exporting
from argand_dynamo import api, history
from argand_dynamo.builtins import FUNCTION_HANDLERS, HANDLERS, PURE, handles, pure_call
from argand_dynamo.exceptions import break_trace
from argand_dynamo.variables.base import Variable, unknown
from argand_dynamo.variables.constant import Constant, SymIntVariable
from argand_dynamo.variables.deques import DequeVariable
from argand_dynamo.variables.dicts import DictVariable
from argand_dynamo.variables.functions import BoundMethodVariable, FunctionVariable, PartialVariable
from argand_dynamo.variables.iterators import (
    ChainIterator,
    CountIterator,
    CycleIterator,
    FilterIterator,
    IsliceIterator,
    MapIterator,
    RepeatIterator,
    SequenceIterator,
    ZipIterator,
)
from argand_dynamo.variables.numpy_objects import NumpyVariable, OutsideArray, array_constant
from argand_dynamo.variables.objects import ExceptionVariable, ObjectVariable
from argand_dynamo.variables.sequences import ListVariable, SequenceVariable, TupleVariable
from argand_dynamo.variables.tensor import TensorVariable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

# operator -------------------------------------------------------------------------------------


def _binary(name: str) -> Any:
    return lambda tx, a, b: tx.binary(name, a, b)


def _compare(name: str) -> Any:
    return lambda tx, a, b: tx.compare(name, a, b)


def _unary(name: str) -> Any:
    return lambda tx, a: tx.unary(name, a)


for _name in "add sub mul truediv floordiv mod pow lshift rshift xor matmul".split():
    HANDLERS[getattr(operator, _name)] = _binary(_name)
    HANDLERS[getattr(operator, f"i{_name}")] = _binary(f"i{_name}")
for _name in ("and", "or"):
    HANDLERS[getattr(operator, f"{_name}_")] = _binary(_name)
    HANDLERS[getattr(operator, f"i{_name}")] = _binary(f"i{_name}")
for _name in ("lt", "le", "eq", "ne", "gt", "ge"):
    HANDLERS[getattr(operator, _name)] = _compare(_name)
for _name in ("neg", "pos", "invert"):
    HANDLERS[getattr(operator, _name)] = _unary(_name)
HANDLERS[operator.abs] = HANDLERS[abs]
HANDLERS[operator.not_] = lambda tx, a: Constant(not tx.truth(a))
HANDLERS[operator.truth] = lambda tx, a: Constant(tx.truth(a))
HANDLERS[operator.is_] = lambda tx, a, b: Constant(tx.identical(a, b))
HANDLERS[operator.is_not] = lambda tx, a, b: Constant(not tx.identical(a, b))
HANDLERS[operator.contains] = lambda tx, a, b: Constant(tx.truth(a.contains(tx, b)))
HANDLERS[operator.getitem] = lambda tx, a, b: tx.getitem(a, b)


@handles(operator.setitem)
def _setitem(tx: Tracer, owner: Variable, key: Variable, value: Variable) -> Variable:
    owner.setitem(tx, key, value)
    return Constant(None)


@handles(operator.index)
def _index(tx: Tracer, value: Variable) -> Variable:
    if isinstance(value, SymIntVariable):
        return value.as_int()
    number = tx.as_index(value)
    if number is None:
        tx.raise_(
            TypeError,
            f"'{value.python_type().__name__}' object cannot be interpreted as an integer",
        )
    return Constant(number)


class _Getter(Variable):
    """operator.itemgetter and operator.attrgetter."""

    __slots__ = ("kind", "names")

    def __init__(self, kind: str, names: list[Variable]) -> None:
        self.source = None
        self.kind = kind
        self.names = names

    def describe(self) -> str:
        return f"operator.{self.kind}"

    def truth(self, tx: Tracer) -> bool:
        return True

    def _one(self, tx: Tracer, owner: Variable, name: Variable) -> Variable:
        if self.kind == "itemgetter":
            return tx.getitem(owner, name)
        for part in tx.raw(name).split("."):
            owner = tx.realize(owner).getattr(tx, part)
        return owner

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        found = [self._one(tx, args[0], name) for name in self.names]
        return found[0] if len(found) == 1 else TupleVariable(found)


class _MethodCaller(Variable):
    """operator.methodcaller"""

    __slots__ = ("args", "kwargs", "name")

    def __init__(self, name: str, args: list[Variable], kwargs: dict[str, Variable]) -> None:
        self.source = None
        self.name = name
        self.args = args
        self.kwargs = kwargs

    def describe(self) -> str:
        return "operator.methodcaller"

    def truth(self, tx: Tracer) -> bool:
        return True

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        return args[0].call_method(tx, self.name, self.args, self.kwargs)


HANDLERS[operator.itemgetter] = lambda tx, *names: _Getter("itemgetter", list(names))
HANDLERS[operator.methodcaller] = lambda tx, name, /, *args, **kwargs: _MethodCaller(
    tx.raw(name), list(args), kwargs
)
HANDLERS[operator.attrgetter] = lambda tx, *names: _Getter("attrgetter", list(names))

# math and other functions of constants ----------------------------------------------------------

PURE |= {f for f in vars(math).values() if isinstance(f, types.BuiltinFunctionType)}
PURE |= {
    native.promote_types, native.can_cast, argand_c10.device, typing.get_origin, typing.get_args,
    os.fspath, str.maketrans, bytes.fromhex, float.fromhex, int.from_bytes, inspect.isclass, sys.intern,
}  # fmt: skip


@handles(math.prod)
def _prod(tx: Tracer, items: Variable, *, start: Variable | None = None) -> Variable:
    total: Variable = Constant(1) if start is None else start
    for item in tx.unpack(items):
        total = tx.binary("mul", total, item)
    return total


for _function in (math.floor, math.ceil, math.trunc):

    def _round(tx: Tracer, value: Variable, function: Any = _function) -> Variable:
        if isinstance(value, SymIntVariable):
            return value.as_int()
        return pure_call(tx, function, [value], {})

    HANDLERS[_function] = _round

# functools --------------------------------------------------------------------------------------


@handles(functools.partial)
def _partial(tx: Tracer, function: Variable, *args: Variable, **kwargs: Variable) -> Variable:
    return PartialVariable(function, list(args), kwargs)


@handles(functools.reduce)
def _reduce(
    tx: Tracer, function: Variable, items: Variable, start: Variable | None = None
) -> Variable:
    iterator = items.iterate(tx)
    total = start if start is not None else iterator.next_item(tx)
    if total is None:
        tx.raise_(TypeError, "reduce() of empty iterable with no initial value")
    while (item := iterator.next_item(tx)) is not None:
        total = function.call(tx, [total, item], {})
    return total


# itertools --------------------------------------------------------------------------------------


@handles(itertools.chain)
def _chain(tx: Tracer, *parts: Variable) -> Variable:
    return ChainIterator([p.iterate(tx) for p in parts])


@handles(itertools.chain.from_iterable)
def _chain_from(tx: Tracer, parts: Variable) -> Variable:
    return ChainIterator([tx.realize(p).iterate(tx) for p in tx.unpack(parts)])


@handles(itertools.islice)
def _islice(tx: Tracer, items: Variable, *bounds: Variable) -> Variable:
    numbers = [
        None if isinstance(b, Constant) and b.value is None else tx.as_index(b) for b in bounds
    ]
    where = slice(*numbers)
    return IsliceIterator(items.iterate(tx), where.start or 0, where.stop, where.step or 1)


@handles(itertools.zip_longest)
def _zip_longest(tx: Tracer, *parts: Variable, fillvalue: Variable | None = None) -> Variable:
    return ZipIterator([p.iterate(tx) for p in parts], longest=True, fill=fillvalue)


@handles(itertools.count)
def _count(tx: Tracer, start: Variable | None = None, step: Variable | None = None) -> Variable:
    return CountIterator(
        Constant(0) if start is None else start, Constant(1) if step is None else step
    )


@handles(itertools.repeat)
def _repeat(tx: Tracer, item: Variable, times: Variable | None = None) -> Variable:
    return RepeatIterator(item, None if times is None else tx.as_index(times))


@handles(itertools.cycle)
def _cycle(tx: Tracer, items: Variable) -> Variable:
    return CycleIterator(items.iterate(tx))


@handles(itertools.starmap)
def _starmap(tx: Tracer, function: Variable, items: Variable) -> Variable:
    def call(tx: Tracer, found: list[Variable]) -> Variable:
        return function.call(tx, [tx.realize(x) for x in tx.unpack(found[0])], {})

    return MapIterator([items.iterate(tx)], call)


@handles(itertools.filterfalse)
def _filterfalse(tx: Tracer, function: Variable, items: Variable) -> Variable:
    if isinstance(function, Constant):
        return FilterIterator(items.iterate(tx), lambda tx, x: tx.truth(x), keep=False)
    return FilterIterator(
        items.iterate(tx), lambda tx, x: tx.truth(function.call(tx, [x], {})), keep=False
    )


@handles(itertools.accumulate)
def _accumulate(
    tx: Tracer,
    items: Variable,
    function: Variable | None = None,
    *,
    initial: Variable | None = None,
) -> Variable:
    found: list[Variable] = []
    total = None if initial is None or _is_none(initial) else initial
    if total is not None:
        found.append(total)
    for item in map(tx.realize, tx.unpack(items)):
        if total is None:
            total = item
        elif function is None or _is_none(function):
            total = tx.binary("add", total, item)
        else:
            total = function.call(tx, [total, item], {})
        found.append(total)
    return SequenceIterator(found)


def _is_none(variable: Variable) -> bool:
    return isinstance(variable, Constant) and variable.value is None


def _choose(function: Any) -> Any:
    def choose(tx: Tracer, *args: Variable, **kwargs: Variable) -> Variable:
        if function is itertools.product:
            pools = [tx.unpack(a) for a in args]
            chosen = function(*pools, **{k: tx.raw(v) for k, v in kwargs.items()})
        else:
            rest = [tx.raw(a) for a in args[1:]]
            chosen = function(
                tx.unpack(args[0]), *rest, **{k: tx.raw(v) for k, v in kwargs.items()}
            )
        return SequenceIterator([TupleVariable(list(items)) for items in chosen])

    return choose


for _other in (
    itertools.product, itertools.combinations, itertools.permutations,
    itertools.combinations_with_replacement, itertools.pairwise,
):  # fmt: skip
    HANDLERS[_other] = _choose(_other)

# collections ------------------------------------------------------------------------------------


@handles(collections.OrderedDict)
def _ordered_dict(tx: Tracer, items: Variable | None = None, /, **entries: Variable) -> Variable:
    made = DictVariable({}, collections.OrderedDict)
    if items is not None:
        made.merge(tx, items)
    for name, value in entries.items():
        made.setitem(tx, Constant(name), value)
    return made


@handles(collections.defaultdict)
def _defaultdict(
    tx: Tracer,
    factory: Variable | None = None,
    items: Variable | None = None,
    /,
    **entries: Variable,
) -> Variable:
    maker = None if factory is None or _is_none(factory) else factory
    made = DictVariable({}, collections.defaultdict, None, maker)
    if items is not None:
        made.merge(tx, items)
    for name, value in entries.items():
        made.setitem(tx, Constant(name), value)
    return made


@handles(collections.deque)
def _deque(
    tx: Tracer, iterable: Variable | None = None, maxlen: Variable | None = None
) -> Variable:
    limit = None if maxlen is None or _is_none(maxlen) else tx.as_index(maxlen)
    if limit is not None and limit < 0:
        tx.raise_(ValueError, "maxlen must be non-negative")
    made = DequeVariable([], limit)
    if iterable is not None:
        made.call_method(tx, "extend", [iterable], {})
    return made


@handles(types.SimpleNamespace)
def _namespace(tx: Tracer, **entries: Variable) -> Variable:
    made = tx.new_object(types.SimpleNamespace)
    for name, value in entries.items():
        made.setattr(tx, name, value)
    return made


# Threads, exceptions and methods ------------------------------------------------------------------


@handles(threading.get_ident)
def _get_ident(tx: Tracer) -> Variable:
    """The thread is guarded."""
    found = threading.get_ident()
    path = (("module", "threading"), ("attr", "get_ident"), ("call", ((), ())))
    tx.guard(path, "EQUALS", found)
    return Constant(found)


@handles(sys.exc_info)
def _exc_info(tx: Tracer) -> Variable:
    if sys.exc_info()[0] is not None:
        unknown("sys.exc_info() where the caller handles an exception")
    tx.guard(
        (("module", "sys"), ("attr", "exc_info"), ("call", ((), ()))), "EQUALS", (None, None, None)
    )
    for frame in reversed(tx.frames):
        if frame.exceptions:
            error = frame.exceptions[-1]
            return TupleVariable([tx.from_raw(error.python_type()), error, Constant(None)])
    return TupleVariable([Constant(None)] * 3)


@handles(
    *[
        vars(kind)["__init__"]
        for kind in (
            BaseException, Exception, ArithmeticError, AssertionError, BufferError, EOFError, LookupError, IndexError, KeyError,
            MemoryError, RuntimeError, NotImplementedError, RecursionError, ReferenceError, TypeError, ValueError,
            FloatingPointError, OverflowError, ZeroDivisionError, Warning, UserWarning, RuntimeWarning,
        )
    ]
)  # fmt: skip
def _exception_init(tx: Tracer, owner: Variable, *args: Variable) -> Variable:
    if not isinstance(owner, ExceptionVariable):
        unknown(f"Exception.__init__ of {owner.describe()}")
    owner.args = list(args)
    return Constant(None)


@handles(types.MethodType)
def _method(tx: Tracer, function: Variable, owner: Variable) -> Variable:
    return BoundMethodVariable(function, owner)


# Argand -----------------------------------------------------------------------------------------


@handles(native._profiler_enter)
def _profiler_enter(tx: Tracer, name: Variable) -> Variable:
    return Constant(-1)


@handles(native._profiler_leave)
def _profiler_leave(tx: Tracer, event: Variable) -> Variable:
    return Constant(None)


@handles(autograd_native.is_grad_enabled)
def _is_grad_enabled(tx: Tracer) -> Variable:
    return Constant(tx.builder.grad_enabled)


@handles(autograd_native._set_grad_enabled)
def _set_grad_enabled(tx: Tracer, enabled: Variable) -> Variable:
    tx.set_grad_mode(bool(tx.raw(enabled)))
    return Constant(None)


@handles(autograd_native.is_inference_mode_enabled)
def _is_inference_mode_enabled(tx: Tracer) -> Variable:
    return Constant(argand_autograd.is_inference_mode_enabled())


@handles(autograd_native._set_inference_mode)
def _set_inference_mode(tx: Tracer, enabled: Variable) -> Variable:
    if bool(tx.raw(enabled)) != argand_autograd.is_inference_mode_enabled():
        raise break_trace("grad_mode", "inference_mode()")
    return Constant(None)


@handles(aten_native.autocast_state)
def _autocast_state(tx: Tracer) -> Variable:
    return Constant(tx.autocast.state)


@handles(aten_native.set_autocast_state)
def _set_autocast_state(tx: Tracer, state: Variable) -> Variable:
    tx.autocast.state = tx.raw(state)
    return Constant(None)


@handles(aten_native.clear_autocast_cache)
def _clear_autocast_cache(tx: Tracer) -> Variable:
    tx.autocast.clear()
    return Constant(None)


@handles(aten_native.device_type_number)
def _device_type_number(tx: Tracer, name: Variable) -> Variable:
    return tx.call_python(aten_native.device_type_number, [tx.raw(name)], {})


@handles(native.get_default_dtype)
def _get_default_dtype(tx: Tracer) -> Variable:
    return Constant(native.get_default_dtype())


@handles(native.set_default_dtype, native.set_num_threads)
def _set_state(tx: Tracer, *args: Variable) -> Variable:
    raise break_trace("grad_mode", "a default of the process")


@handles(argand_c10.Size)
def _size(tx: Tracer, sizes: Variable | None = None) -> Variable:
    items = [] if sizes is None else [tx.realize(x) for x in tx.unpack(sizes)]
    return TupleVariable(items, argand_c10.Size)


@handles(native.tensor)
def _tensor(
    tx: Tracer,
    data: Variable,
    *,
    dtype: Variable | None = None,
    device: Variable | None = None,
    requires_grad: Variable | None = None,
) -> Variable:
    if requires_grad is not None and tx.truth(requires_grad):
        raise break_trace("tensor_attribute", "tensor(..., requires_grad=True)")
    if isinstance(data, TensorVariable):
        unknown("tensor() of a tensor")
    options = {}
    if dtype is not None:
        options["dtype"] = tx.raw(dtype)
    if device is not None:
        options["device"] = tx.raw(device)
    if isinstance(data, OutsideArray):
        source = tx.raw(data.tensor(tx))
        copied = tx.operate("clone", source, memory_format=argand_c10.contiguous_format)
        return tx.from_raw(tx.operate("to", copied, **options) if options else copied)
    try:
        made = native.tensor(_numbers(tx, data), **options)
    except (TypeError, ValueError, RuntimeError) as error:
        raise break_trace("operator_error", f"tensor: {error}", error) from None
    constant = tx.operation(tx.builder.constant, made, literal=True)
    # A new tensor in every call, which may be changed.
    return tx.from_raw(tx.operate("clone", constant))


def _numbers(tx: Tracer, data: Variable) -> Any:
    data = tx.realize(data)
    if isinstance(data, SequenceVariable):
        return [_numbers(tx, item) for item in data.items]
    if isinstance(data, SymIntVariable):
        return int(data.value)
    if isinstance(data, Constant | NumpyVariable):
        return data.value
    if isinstance(data, TensorVariable):
        raise break_trace("data_dependent_value", "tensor() of tensors in a list")
    unknown(f"tensor() of {data.describe()}")


@handles(native.from_numpy)
def _from_numpy(tx: Tracer, array: Variable) -> Variable:
    """A copy is as good as the array itself if neither is written to."""
    if isinstance(array, OutsideArray):
        return array.tensor(tx)
    if not isinstance(array, NumpyVariable) or array.source is not None:
        raise break_trace("numpy", "from_numpy()")
    kind = type(array.value)
    whole = not isinstance(array.value.base, kind)
    if not whole or any(isinstance(v, kind) and v.base is array.value for v in tx.keep):
        raise break_trace("numpy", "from_numpy() of an array and a part of it")
    array.value.setflags(write=False)
    made = tx.operate("clone", array_constant(tx, array))
    tx.lent.append((array, made.storage, made.storage.version))
    return tx.from_raw(made)


@handles(object.__reduce_ex__)
def _reduce_ex(tx: Tracer, owner: Variable, protocol: Variable) -> Variable:
    """As `copy.copy` asks for it: how an object of a class written in Python is made again."""
    owner = tx.realize(owner)
    if not isinstance(owner, ObjectVariable) or not _is_plain(tx, owner.cls):
        unknown(f"__reduce_ex__ of {owner.describe()}")
    made = tx.lasting(copyreg.__newobj__, (("module", "copyreg"), ("attr", "__newobj__")))  # type: ignore[attr-defined]
    args = TupleVariable([tx.class_variable(owner.cls)])
    held = owner.getattr(tx, "__dict__").call_method(tx, "items", [], {})
    fields = tx.make_dict(tx.pairs(held))
    return TupleVariable([made, args, fields, Constant(None), Constant(None)])


def _is_plain(tx: Tracer, cls: type) -> bool:
    """Whether all that objects have is in their `__dict__`."""
    own = ("__reduce__", "__getstate__", "__getnewargs__", "__getnewargs_ex__", "__slots__")
    same = all(tx.class_attribute(cls, n) is vars(object).get(n) for n in own)
    return same and cls.__basicsize__ == _WithDict.__basicsize__ and cls.__itemsize__ == 0


class _WithDict:
    pass


@handles(native.from_dlpack, native.frombuffer)
def _from_outside(tx: Tracer, *args: Variable, **kwargs: Variable) -> Variable:
    raise break_trace("numpy", "from_dlpack() or frombuffer()")


@handles(Tensor._make_subclass)
def _make_subclass(tx: Tracer, *args: Variable, **kwargs: Variable) -> Variable:
    raise break_trace("tensor_attribute", "construction of a Parameter or another class of tensors")


# Python functions that are not inlined ------------------------------------------------------------


def _graph_break(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    raise break_trace("requested")


def _mark(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    raise break_trace("unknown_operation", "mark_dynamic() inside of the compiled function")


def _checkpoint(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    raise break_trace("saved_tensors", "checkpoint()")


def _wraps(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    """functools.update_wrapper(wrapper, wrapped), and what functools.wraps(wrapped) calls"""
    wrapper = args[0]
    wrapped = args[1] if len(args) > 1 else tx.realize(kwargs["wrapped"])
    for name in ("__name__", "__qualname__"):
        wrapper.setattr(tx, name, wrapped.getattr(tx, name))
    if isinstance(wrapped, FunctionVariable):
        for name in ("__module__", "__doc__", *wrapped.own_attributes()):
            wrapper.setattr(tx, name, wrapped.getattr(tx, name))
    wrapper.setattr(tx, "__wrapped__", wrapped)
    return wrapper


def _never(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    """Of vmap and jacobians, which run entry by entry in graphs: their loops are fused."""
    return Constant(False)


def _begin_draws(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    """Of vmap, which looks for random numbers."""
    if tx.raw(args[0]) == "same":
        raise break_trace("unknown_operation", "vmap(randomness='same')")
    return Constant(None)


_NOTHING, _ONE = Constant(None), Constant(1)


@handles(warnings.warn)
def _warn(
    tx: Tracer,
    message: Variable,
    category: Variable = _NOTHING,
    stacklevel: Variable = _ONE,
    source: Variable = _NOTHING,
) -> Variable:
    """Warned of once, while the function is traced, at the line that is traced."""
    text, kind, level = tx.raw(message), tx.raw(category) or UserWarning, tx.raw(stacklevel)
    if not isinstance(text, str):
        unknown("warnings.warn() of an object that is no text")
    frame = tx.frames[-min(max(level, 1), len(tx.frames))]
    file, line, _ = frame.location
    scope = frame.globals
    try:
        warnings.warn_explicit(
            text, kind, file, line, scope["__name__"], scope.setdefault("__warningregistry__", {})
        )
    except Warning as warning:  # the filters make errors of it
        tx.raise_(type(warning), *warning.args)
    return Constant(None)


def _log(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    raise break_trace("print", "a message of logging")


FUNCTION_HANDLERS[logging.Logger._log] = _log  # of a logger that is enabled


def _contraction_path(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    """Of the sizes at hand: other sizes of a dynamic graph keep the order, which changes results in rounding only."""

    def hint(size: Variable) -> int:
        size = tx.realize(size)
        return int(size.value.hint if isinstance(size, SymIntVariable) else tx.raw(size))

    terms, output, shapes = args
    sizes = [[hint(size) for size in tx.unpack(tx.realize(shape))] for shape in tx.unpack(shapes)]
    path = contraction_path([tx.raw(term) for term in tx.unpack(terms)], tx.raw(output), sizes)
    return ListVariable([TupleVariable([Constant(place) for place in pair]) for pair in path])


def _as_tensor(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable | None:
    """as_tensor(array): the tensor on its memory, where that may be shared."""
    given = tx.realize(args[0]) if args else None
    if not isinstance(given, OutsideArray):
        return None
    shared: Variable = tx.function_of(as_tensor, None).call(
        tx, [given.tensor(tx), *args[1:]], kwargs
    )
    return shared


def _copy(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable | None:
    """copy.copy(x)"""
    given = tx.realize(args[0]) if len(args) == 1 and not kwargs else None
    if isinstance(given, DictVariable) and given.owner is None:
        return given.call_method(tx, "copy", [], {})
    return None


def _deepcopy(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable | None:
    """copy.deepcopy(x): constants are their own copies."""
    given = tx.realize(args[0]) if args else None
    return given if isinstance(given, Constant) else None


FUNCTION_HANDLERS[as_tensor] = _as_tensor
FUNCTION_HANDLERS[copy.copy] = _copy
FUNCTION_HANDLERS[copy.deepcopy] = _deepcopy
FUNCTION_HANDLERS[api.graph_break] = _graph_break
FUNCTION_HANDLERS[contraction_path] = _contraction_path
FUNCTION_HANDLERS[is_compiling] = lambda tx, args, kwargs: Constant(True)
FUNCTION_HANDLERS[is_exporting] = lambda tx, args, kwargs: Constant(tx.exporting)
FUNCTION_HANDLERS[history.mark_dynamic] = _mark
FUNCTION_HANDLERS[history.mark_static] = _mark
FUNCTION_HANDLERS[argand_autograd.checkpoint] = _checkpoint
FUNCTION_HANDLERS[functools.update_wrapper] = _wraps
FUNCTION_HANDLERS[begin_draws] = _begin_draws
FUNCTION_HANDLERS[shared_result] = lambda tx, args, kwargs: tx.unpack(args[0])[0]
FUNCTION_HANDLERS[runs_at_once] = FUNCTION_HANDLERS[is_entry] = _never
FUNCTION_HANDLERS[run_keeping_graphs] = lambda tx, args, kwargs: args[0].call(tx, args[1:], {})


def _random_state(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    raise break_trace("random_state", "a seed or generator state")


for _seeding in (
    argand_c10.manual_seed, argand_c10.seed, argand_c10.initial_seed, argand_c10.get_rng_state,
    argand_c10.set_rng_state,
):  # fmt: skip
    FUNCTION_HANDLERS[_seeding] = _random_state
