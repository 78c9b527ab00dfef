"""What the tracer knows of functions and types that are not written in Python."""

from __future__ import annotations

import abc
import builtins
import importlib.machinery
import types
import typing
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from argand_c10.module_hooks import HookDict
from argand_dynamo._C import is_constant
from argand_dynamo.exceptions import BreakTrace, break_trace
from argand_dynamo.marks import ALLOWED, DISABLED
from argand_dynamo.trust import is_trusted
from argand_dynamo.variables.base import (
    MISSING,
    Iterator,
    MethodVariable,
    Variable,
    unknown,
)
from argand_dynamo.variables.classes import BuiltinVariable, ClassVariable, SuperVariable
from argand_dynamo.variables.constant import Constant, SymIntVariable
from argand_dynamo.variables.dict_objects import DictObjectVariable
from argand_dynamo.variables.dicts import DictVariable, SetVariable
from argand_dynamo.variables.functions import BoundMethodVariable, FunctionVariable
from argand_dynamo.variables.iterators import (
    EnumerateIterator,
    FilterIterator,
    MapIterator,
    SequenceIterator,
    ZipIterator,
)
from argand_dynamo.variables.numpy_objects import NumpyVariable, call_numpy, is_numpy_call
from argand_dynamo.variables.objects import (
    EnumVariable,
    InstanceDictVariable,
    ObjectVariable,
)
from argand_dynamo.variables.sequences import (
    ListVariable,
    RangeVariable,
    SequenceVariable,
    SliceVariable,
    TupleVariable,
)
from argand_dynamo.variables.tensor import TensorVariable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = [
    "FUNCTION_HANDLERS",
    "HANDLERS",
    "PURE",
    "call_builtin",
    "call_handler",
    "function_handler",
    "handles",
    "pure_call",
]

Builtin = Callable[..., Variable]
# By the object itself.
HANDLERS: dict[Any, Builtin] = {}
# Python functions that are not inlined but stood in for: handler(tx, args, kwargs), which gives None for calls to inline after all.
FUNCTION_HANDLERS: dict[
    Any, Callable[[Any, list[Variable], dict[str, Variable]], Variable | None]
] = {}
# Functions of constants only.
PURE: set[Any] = {abs, ascii, bin, bytes, chr, complex, divmod, float, format, frozenset, hash, hex, int, oct, ord, pow, repr, round, str}  # fmt: skip

# Functions of Python that look for installed packages; named, as their modules may not be loaded.
_INSTALLED = frozenset({("importlib.util", "find_spec"), ("importlib.metadata", "version")})


def handles(*names: Any) -> Callable[[Builtin], Builtin]:
    """Register what stands in for functions or types: handler(tx, *args, **kwargs) over variables."""

    def register(function: Builtin) -> Builtin:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


def function_handler(function: Any) -> Any:
    """What stands in for a Python function, None if it is inlined."""
    if function is MISSING:
        return None
    found = FUNCTION_HANDLERS.get(function)
    if found is None and function.__dict__:
        if DISABLED in function.__dict__:
            raise break_trace("disabled", function.__qualname__)
        if ALLOWED in function.__dict__:
            return partial(_call_allowed, function)
    if found is None and (function.__module__, function.__name__) in _INSTALLED:
        return partial(_call_installed, function)
    if found is None and is_numpy_call(function):
        return lambda tx, args, kwargs: call_numpy(tx, function, args, kwargs)
    return found


def _call_installed(
    function: Any, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """What is installed stays so while the process runs."""
    values = [tx.raw(a) for a in args]
    try:
        found = function(*values, **{k: tx.raw(v) for k, v in kwargs.items()})
    except Exception as error:
        tx.raise_(type(error), *error.args)
    if isinstance(found, importlib.machinery.ModuleSpec):
        return tx.remember(found, ObjectVariable(type(found), found))
    return tx.from_raw(found)


def _call_allowed(
    function: Any, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """Run a function on the traced tensors themselves; one that refuses them, as it asks what kind of tensors they are, is traced."""
    before = len(tx.graph.nodes)
    try:
        values = [tx.raw(a) for a in args]
        named = {k: tx.raw(v) for k, v in kwargs.items()}
        return tx.from_raw(tx.operation(function, *values, **named))
    except BreakTrace:
        if len(tx.graph.nodes) != before:
            raise
    return tx.run_inlined(tx.enter_function(tx.function_of(function, None), args, kwargs))


def call_builtin(
    tx: Tracer, function: BuiltinVariable, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """A call of a native function or an unbound native method."""
    value = function.value
    handler = HANDLERS.get(value) if _hashable(value) else None
    if handler is not None:
        return call_handler(tx, handler, function, args, kwargs)
    if isinstance(value, types.MethodDescriptorType | types.WrapperDescriptorType) and args:
        return _call_unbound(tx, value, args, kwargs)
    if value in PURE or is_constant(getattr(value, "__self__", MISSING)):
        return pure_call(tx, value, args, kwargs)
    if is_numpy_call(value):
        return call_numpy(tx, value, args, kwargs)
    if _is_parametrised(value):
        made = tx.from_raw(value.__origin__).call(tx, args, kwargs)
        if isinstance(made, ObjectVariable) and made.has_instance_dict():
            made.setattr(tx, "__orig_class__", function)
        return made
    numpy = (getattr(value, "__module__", None) or "").startswith("numpy")
    raise break_trace("numpy" if numpy else "unknown_function", function.describe())


def _is_parametrised(value: Any) -> bool:
    """Whether it is a class with parameters, as `Box[int]`, which makes objects of the class."""
    known = type(value) is types.GenericAlias or type(value).__module__ == "typing"
    return known and isinstance(getattr(value, "__origin__", None), type)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def call_handler(
    tx: Tracer,
    handler: Builtin,
    function: Variable,
    args: list[Variable],
    kwargs: dict[str, Variable],
) -> Variable:
    """What a handler makes of a call that it may not know in this form."""
    try:
        result = handler(tx, *args, **kwargs)
        if isinstance(result, Iterator):
            tx.born(result)
        return result
    except TypeError as error:
        # The handler's signature is narrower than the function's, or the call is wrong.
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            unknown(f"{function.describe()} with these arguments")
        raise


def pure_call(
    tx: Tracer, function: Any, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """Fold a call whose arguments are all constants."""
    values = [_plain(tx, a) for a in args]
    named = {k: _plain(tx, v) for k, v in kwargs.items()}
    return tx.call_python(function, values, named)


def _plain(tx: Tracer, variable: Variable) -> Any:
    variable = tx.realize(variable)
    if isinstance(variable, SymIntVariable):
        return variable.fixed().value
    if isinstance(variable, NumpyVariable):
        return variable.value
    if isinstance(variable, TensorVariable):
        raise break_trace("data_dependent_value", "a tensor as an argument of a Python function")
    if isinstance(variable, SequenceVariable):
        values = [_plain(tx, item) for item in variable.items]
        return values if isinstance(variable, ListVariable) else tuple(values)
    return tx.raw(variable)


def _call_unbound(
    tx: Tracer, value: Any, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """type.method(object, ...): of the built-in type itself, also for objects of derived classes."""
    owner, name = args[0], value.__name__
    if isinstance(owner, DictObjectVariable) and value.__objclass__ in (dict, OrderedDict):
        return owner.native(tx, name, args[1:], kwargs)
    kind = owner.python_type()
    if isinstance(owner, ObjectVariable) and type(owner).call_method is Variable.call_method:
        unknown(f"{value.__objclass__.__name__}.{name} of {owner.describe()}")
    if kind is value.__objclass__ or not isinstance(owner, ObjectVariable):
        if isinstance(owner, ClassVariable) and name != "__call__":
            unknown(f"{value.__objclass__.__name__}.{name} of a class")
        return owner.call_method(tx, name, args[1:], kwargs)
    unknown(f"{value.__objclass__.__name__}.{name} of {owner.describe()}")


# Types and attributes ------------------------------------------------------------------------


@handles(isinstance)
def _isinstance(tx: Tracer, value: Variable, kinds: Variable) -> Variable:
    wanted = _types(tx, kinds)
    return Constant(issubclass_of(tx, value.python_type(), wanted))


_ALIAS: Any = type(vars(typing)["Iterable"])


def issubclass_of(tx: Tracer, kind: type, wanted: Any) -> bool:
    """issubclass without running user code."""
    found = False
    for want in wanted if isinstance(wanted, tuple) else (wanted,):
        if isinstance(want, types.UnionType) or getattr(want, "__origin__", None) is typing.Union:
            want = want.__args__
        elif isinstance(want, _ALIAS):
            want = want.__origin__
        if isinstance(want, tuple):
            found = found or issubclass_of(tx, kind, want)
            continue
        if isinstance(want, type) and type(want) is not type and not _trusted_meta(type(want)):
            unknown(f"isinstance of {want.__name__}, whose metaclass decides")
        found = found or _derives(tx, kind, want)
    return found


def _derives(tx: Tracer, kind: type, want: Any) -> bool:
    """issubclass, guarded where a class may be registered with an abstract one later."""
    found = issubclass(kind, want)
    abstract = isinstance(want, abc.ABCMeta) and want not in kind.__mro__
    if abstract and not (is_trusted(kind.__module__) and is_trusted(want.__module__)):
        paths = [tx.class_source(cls) for cls in (kind, want)]
        if None in paths:  # the count of all registrations
            tx.guard((*_REGISTERED, ("call", ((), ()))), "EQUALS", abc.get_cache_token())
        else:
            given = tuple([("source", path) for path in paths])
            tx.guard((*_ISSUBCLASS, ("call", (given, ()))), "EQUALS", found)
    return found


_REGISTERED = (("module", "abc"), ("attr", "get_cache_token"))
_ISSUBCLASS = (("module", "builtins"), ("attr", "issubclass"))


def _trusted_meta(meta: type) -> bool:
    check: Any = meta.__instancecheck__
    return check is type.__instancecheck__ or meta.__module__ in ("typing", "enum", "abc")


def _types(tx: Tracer, kinds: Variable) -> Any:
    if isinstance(kinds, SequenceVariable):
        return tuple(_types(tx, tx.realize(item)) for item in kinds.items)
    return kinds.value if isinstance(kinds, BuiltinVariable) else tx.raw(kinds)


@handles(issubclass)
def _issubclass(tx: Tracer, value: Variable, kinds: Variable) -> Variable:
    kind = tx.raw(value)
    if not isinstance(kind, type):
        tx.raise_(TypeError, "issubclass() arg 1 must be a class")
    return Constant(issubclass_of(tx, kind, _types(tx, kinds)))


@handles(type)
def _type(tx: Tracer, value: Variable, *rest: Variable) -> Variable:
    if rest:
        unknown("type() with three arguments")
    return tx.from_raw(value.python_type())


@handles(super)
def _super(tx: Tracer, start: Variable | None = None, of: Variable | None = None) -> Variable:
    if start is None or of is None:
        frame = tx.frames[-1]
        cell = frame.cells.get("__class__")
        first = frame.code.co_varnames[0] if frame.code.co_argcount else ""
        owner = frame.locals.get(first)
        if owner is None and first in frame.cells:
            owner = frame.cells[first].load(tx)
        if cell is None or owner is None:
            unknown("super() outside of a method")
        found = cell.load(tx)
        assert found is not None
        start, of = found, tx.realize(owner)
    if not isinstance(start, ClassVariable):
        unknown("super() of something that is no class")
    return SuperVariable(start.value, of)


@handles(getattr)
def _getattr(
    tx: Tracer, owner: Variable, name: Variable, default: Variable | None = None
) -> Variable:
    text = tx.raw(name)
    if default is None:
        return owner.getattr(tx, text)
    found = tx.unless_raised(AttributeError, lambda: _existing(tx, owner, text))
    return default if found is None else found


def _existing(tx: Tracer, owner: Variable, name: str) -> Variable:
    """owner.name; raises the program's AttributeError also where `getattr` puts the question off."""
    if isinstance(owner, TensorVariable) and not hasattr(owner.cls, name):
        return owner.getattr(tx, name)
    if isinstance(
        owner, Constant | SymIntVariable | Iterator | MethodVariable | InstanceDictVariable
    ):
        if not hasattr(owner.python_type(), name):
            tx.raise_(
                AttributeError, f"'{owner.python_type().__name__}' object has no attribute '{name}'"
            )
    return owner.getattr(tx, name)


@handles(hasattr)
def _hasattr(tx: Tracer, owner: Variable, name: Variable) -> Variable:
    text = tx.raw(name)
    if isinstance(owner, TensorVariable) and hasattr(owner.cls, text):
        if text in ("grad_fn", "data"):
            return Constant(True)
    found = tx.unless_raised(AttributeError, lambda: _existing(tx, owner, text))
    return Constant(found is not None)


@handles(setattr)
def _setattr(tx: Tracer, owner: Variable, name: Variable, value: Variable) -> Variable:
    owner.setattr(tx, tx.raw(name), value)
    return Constant(None)


@handles(delattr)
def _delattr(tx: Tracer, owner: Variable, name: Variable) -> Variable:
    owner.delattr(tx, tx.raw(name))
    return Constant(None)


@handles(object.__getattribute__)
def _object_getattribute(tx: Tracer, owner: Variable, name: Variable) -> Variable:
    if not isinstance(owner, ObjectVariable):
        unknown(f"object.__getattribute__ of {owner.describe()}")
    text = tx.raw(name)
    found = owner.find_attribute(tx, text)
    if found is None:
        tx.raise_(AttributeError, f"'{owner.cls.__name__}' object has no attribute '{text}'")
    return found


@handles(object.__setattr__)
def _object_setattr(tx: Tracer, owner: Variable, name: Variable, value: Variable) -> Variable:
    if not isinstance(owner, ObjectVariable):
        unknown(f"object.__setattr__ of {owner.describe()}")
    owner.store(tx, tx.raw(name), value)
    return Constant(None)


@handles(object.__delattr__)
def _object_delattr(tx: Tracer, owner: Variable, name: Variable) -> Variable:
    if not isinstance(owner, ObjectVariable):
        unknown(f"object.__delattr__ of {owner.describe()}")
    owner.remove(tx, tx.raw(name))
    return Constant(None)


@handles(object.__init__)
def _object_init(tx: Tracer, owner: Variable, *args: Variable, **kwargs: Variable) -> Variable:
    return Constant(None)


@handles(object)
def _object(tx: Tracer) -> Variable:
    return tx.new_object(object)


@handles(object.__eq__)
def _object_eq(tx: Tracer, a: Variable, b: Variable) -> Variable:
    return Constant(True) if tx.identical(a, b) else Constant(NotImplemented)


@handles(callable)
def _callable(tx: Tracer, value: Variable) -> Variable:
    if isinstance(
        value,
        FunctionVariable | BoundMethodVariable | ClassVariable | BuiltinVariable | MethodVariable,
    ):
        return Constant(True)
    return Constant(callable_type(tx, value.python_type()))


def callable_type(tx: Tracer, kind: type) -> bool:
    """Whether objects of the class can be called."""
    return tx.class_attribute(kind, "__call__") is not None


@handles(builtins.id)
def _id(tx: Tracer, value: Variable) -> Variable:
    return IdVariable(value)


class IdVariable(Variable):
    """id(object): a number that only tells objects apart."""

    __slots__ = ("of",)

    def __init__(self, of: Variable) -> None:
        self.source = None
        self.of = of

    def python_type(self) -> type:
        return int

    def describe(self) -> str:
        return f"id of {self.of.describe()}"

    def key(self) -> Any:
        if isinstance(self.of, Constant):
            unknown("id() of a constant as a key")
        return ("id", self.of.key() if isinstance(self.of, ClassVariable) else self.of)

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if not isinstance(other, IdVariable) or operation not in ("eq", "ne"):
            unknown("a comparison of id()")
        return Constant(tx.identical(self.of, other.of) is (operation == "eq"))


@handles(vars)
def _vars(tx: Tracer, value: Variable) -> Variable:
    return value.getattr(tx, "__dict__")


# Iteration and containers --------------------------------------------------------------------


@handles(len)
def _len(tx: Tracer, value: Variable) -> Variable:
    return value.length(tx)


@handles(iter)
def _iter(tx: Tracer, value: Variable, sentinel: Variable | None = None) -> Variable:
    if sentinel is not None:
        unknown("iter() with two arguments")
    return value.iterate(tx)


@handles(next)
def _next(tx: Tracer, value: Variable, default: Variable | None = None) -> Variable:
    if default is None:
        return tx.next(value)
    found = tx.unless_raised(StopIteration, lambda: tx.next(value))
    return default if found is None else found


@handles(list)
def _list(tx: Tracer, items: Variable | None = None) -> Variable:
    return ListVariable([] if items is None else tx.unpack(items))


@handles(tuple)
def _tuple(tx: Tracer, items: Variable | None = None) -> Variable:
    if isinstance(items, TupleVariable) and items.cls is tuple:
        return items
    return TupleVariable([] if items is None else tx.unpack(items))


@handles(tuple.__new__)
def _tuple_new(tx: Tracer, cls: Variable, items: Variable | None = None) -> Variable:
    if not isinstance(cls, ClassVariable):
        unknown("tuple.__new__ of something that is no class")
    if cls.value is not tuple and not hasattr(cls.value, "_fields"):
        unknown(f"construction of {cls.describe()}")
    return TupleVariable([] if items is None else tx.unpack(items), cls.value)


@handles(set)
def _set(tx: Tracer, items: Variable | None = None) -> Variable:
    return _new_set(tx, items, set)


@handles(frozenset)
def _frozenset(tx: Tracer, items: Variable | None = None) -> Variable:
    return _new_set(tx, items, frozenset)


def _new_set(tx: Tracer, items: Variable | None, cls: type) -> Variable:
    if isinstance(items, SetVariable) and items.cls is cls is frozenset:
        return items
    made = tx.make_set([])
    if items is not None:
        made.call_method(tx, "update", [items], {})
    made.cls = cls
    return made


@handles(dict)
def _dict(tx: Tracer, items: Variable | None = None, /, **entries: Variable) -> Variable:
    made = DictVariable({})
    if items is not None:
        made.merge(tx, items)
    for name, value in entries.items():
        made.setitem(tx, Constant(name), value)
    return made


@handles(HookDict)
def _hook_dict(tx: Tracer) -> Variable:
    return DictVariable({}, HookDict)


@handles(dict.fromkeys)
def _fromkeys(tx: Tracer, keys: Variable, value: Variable | None = None) -> Variable:
    filler = Constant(None) if value is None else value
    return tx.make_dict([(tx.realize(k), filler) for k in tx.unpack(keys)])


@handles(range)
def _range(tx: Tracer, *bounds: Variable) -> Variable:
    numbers = []
    for bound in bounds:
        number = tx.as_index(bound)
        if number is None:
            tx.raise_(
                TypeError,
                f"'{bound.python_type().__name__}' object cannot be interpreted as an integer",
            )
        numbers.append(number)
    try:
        return RangeVariable(range(*numbers))
    except (TypeError, ValueError) as error:
        tx.raise_(type(error), *error.args)


@handles(slice)
def _slice(tx: Tracer, *bounds: Variable) -> Variable:
    nothing = Constant(None)
    if len(bounds) == 1:
        return SliceVariable([nothing, bounds[0], nothing])
    return SliceVariable([*bounds, nothing][:3])


@handles(enumerate)
def _enumerate(tx: Tracer, items: Variable, start: Variable | None = None) -> Variable:
    return EnumerateIterator(items.iterate(tx), Constant(0) if start is None else start)


@handles(zip)
def _zip(tx: Tracer, *parts: Variable, strict: Variable | None = None) -> Variable:
    return ZipIterator([p.iterate(tx) for p in parts], strict is not None and tx.truth(strict))


@handles(map)
def _map(tx: Tracer, function: Variable, *parts: Variable) -> Variable:
    return MapIterator(
        [p.iterate(tx) for p in parts], lambda tx, items: function.call(tx, items, {})
    )


@handles(filter)
def _filter(tx: Tracer, function: Variable, items: Variable) -> Variable:
    if isinstance(function, Constant) and function.value is None:
        return FilterIterator(items.iterate(tx), lambda tx, item: tx.truth(item))
    return FilterIterator(
        items.iterate(tx), lambda tx, item: tx.truth(function.call(tx, [item], {}))
    )


@handles(reversed)
def _reversed(tx: Tracer, items: Variable) -> Variable:
    if isinstance(items, ObjectVariable):
        method = items.special(tx, "__reversed__")
        if method is not None:
            return method.call(tx, [], {})
        unknown(f"reversed() of {items.describe()}")
    if isinstance(items, RangeVariable):
        return SequenceIterator([Constant(i) for i in reversed(items.value)])
    return SequenceIterator(list(reversed(tx.unpack(items))))


@handles(sorted)
def _sorted(
    tx: Tracer, items: Variable, *, key: Variable | None = None, reverse: Variable | None = None
) -> Variable:
    items = tx.realize(items)
    kinds = (
        {x.python_type() for x in items.members.values()}
        if isinstance(items, SetVariable)
        else set()
    )
    if key is None and isinstance(items, SetVariable) and kinds in ({str}, {int}):
        given = list(items.members.values())  # whatever its order is
    else:
        given = tx.unpack(items)
    return ListVariable(tx.sort([tx.realize(x) for x in given], key, reverse))


@handles(sum)
def _sum(tx: Tracer, items: Variable, start: Variable | None = None) -> Variable:
    total: Variable = Constant(0) if start is None else start
    iterator = items.iterate(tx)
    while (item := iterator.next_item(tx)) is not None:
        total = tx.binary("add", total, item)
    return total


@handles(any)
def _any(tx: Tracer, items: Variable) -> Variable:
    iterator = items.iterate(tx)
    while (item := iterator.next_item(tx)) is not None:
        if tx.truth(item):
            return Constant(True)
    return Constant(False)


@handles(all)
def _all(tx: Tracer, items: Variable) -> Variable:
    iterator = items.iterate(tx)
    while (item := iterator.next_item(tx)) is not None:
        if not tx.truth(item):
            return Constant(False)
    return Constant(True)


def _extreme(operation: str) -> Builtin:
    def choose(
        tx: Tracer, *args: Variable, key: Variable | None = None, default: Variable | None = None
    ) -> Variable:
        items = [tx.realize(x) for x in (tx.unpack(args[0]) if len(args) == 1 else args)]
        if not items:
            if default is None:  # raises, in the words of this version of Python
                return tx.call_python(min if operation == "lt" else max, [()][: len(args)], {})
            return default
        plain = key is None or (isinstance(key, Constant) and key.value is None)
        best = items[0]
        best_key = best if plain else key.call(tx, [best], {})  # type: ignore[union-attr]
        for item in items[1:]:
            item_key = item if plain else key.call(tx, [item], {})  # type: ignore[union-attr]
            if tx.truth(tx.compare(operation, item_key, best_key)):
                best, best_key = item, item_key
        return best

    return choose


HANDLERS[min] = _extreme("lt")
HANDLERS[max] = _extreme("gt")


# Numbers and text ----------------------------------------------------------------------------


@handles(bool)
def _bool(tx: Tracer, value: Variable | None = None) -> Variable:
    return Constant(False if value is None else tx.truth(value))


def _number(tx: Tracer, kind: type, value: TensorVariable) -> Variable:
    known = value.known()
    if known is None:
        raise break_trace("data_dependent_value", f"{kind.__name__}() of a tensor")
    return tx.call_python(kind, [known], {})


@handles(int)
def _int(tx: Tracer, value: Variable | None = None, base: Variable | None = None) -> Variable:
    if value is None:
        return Constant(0)
    if isinstance(value, SymIntVariable) and base is None:
        return value.as_int()
    if isinstance(value, TensorVariable):
        return _number(tx, int, value)
    if isinstance(value, ObjectVariable) and not isinstance(value, EnumVariable):
        for name in ("__int__", "__index__"):
            method = value.special(tx, name)
            if method is not None:
                return method.call(tx, [], {})
    return pure_call(tx, int, [value] if base is None else [value, base], {})


@handles(float)
def _float(tx: Tracer, value: Variable | None = None) -> Variable:
    if value is None:
        return Constant(0.0)
    if isinstance(value, TensorVariable):
        return _number(tx, float, value)
    return pure_call(tx, float, [value], {})


@handles(abs)
def _abs(tx: Tracer, value: Variable) -> Variable:
    if isinstance(value, TensorVariable):
        return tx.from_raw(tx.operate("abs", value.fake))
    if isinstance(value, ObjectVariable):
        return value.unary(tx, "abs")
    return pure_call(tx, abs, [value], {})


@handles(pow)
def _pow(tx: Tracer, a: Variable, b: Variable, mod: Variable | None = None) -> Variable:
    return tx.binary("pow", a, b) if mod is None else pure_call(tx, pow, [a, b, mod], {})


@handles(divmod)
def _divmod(tx: Tracer, a: Variable, b: Variable) -> Variable:
    return TupleVariable([tx.binary("floordiv", a, b), tx.binary("mod", a, b)])


@handles(round)
def _round(tx: Tracer, value: Variable, digits: Variable | None = None) -> Variable:
    if isinstance(value, TensorVariable):
        unknown("round() of a tensor")
    return pure_call(tx, round, [value] if digits is None else [value, digits], {})


@handles(str)
def _str(tx: Tracer, *args: Variable) -> Variable:
    if not args:
        return Constant("")
    return tx.call_python(str, [tx.format_value(args[0]), *[tx.raw(a) for a in args[1:]]], {})


@handles(repr)
def _repr(tx: Tracer, value: Variable) -> Variable:
    return tx.call_python(repr, [tx.format_value(value)], {})


@handles(format)
def _format(tx: Tracer, value: Variable, spec: Variable | None = None) -> Variable:
    text = "" if spec is None else tx.raw(spec)
    return tx.call_python(format, [tx.format_value(value), text], {})


@handles(hash)
def _hash(tx: Tracer, value: Variable) -> Variable:
    if isinstance(value, Constant) and type(value.value) in (int, float, bool):
        return Constant(hash(value.value))
    unknown("hash() of an object whose hash differs between processes")


@handles(print)
def _print(tx: Tracer, *args: Variable, **kwargs: Variable) -> Variable:
    raise break_trace("print", "print()")


@handles(input, open, exec, eval, compile, globals, locals, dir, __import__, breakpoint)
def _outside(tx: Tracer, *args: Variable, **kwargs: Variable) -> Variable:
    raise break_trace(
        "unknown_function", "a function that reads or changes what is outside of the program"
    )
