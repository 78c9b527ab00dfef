"""NumPy scalars, arrays and dtypes, of which everything is known while tracing: what is done with them is done by NumPy itself then."""

from __future__ import annotations

import operator
import sys
import types
from typing import TYPE_CHECKING, Any

import argand_c10
from argand_c10 import _C as native
from argand_dynamo.configuration import config
from argand_dynamo.exceptions import Raised, break_trace
from argand_dynamo.variables.base import (
    ExistingObject,
    Iterator,
    MethodVariable,
    NotConstantError,
    Source,
    Variable,
    unknown,
)
from argand_dynamo.variables.constant import Constant, SymIntVariable
from argand_dynamo.variables.dicts import DictVariable
from argand_dynamo.variables.iterators import SequenceIterator
from argand_dynamo.variables.sequences import (
    ListVariable,
    RangeVariable,
    SequenceVariable,
    SliceVariable,
)

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = [
    "NumpyVariable",
    "OutsideArray",
    "SymbolicNumpyInt",
    "array_constant",
    "call_numpy",
    "is_numpy_call",
    "is_numpy_value",
    "numpy_result",
    "shares_memory",
    "wrap_numpy",
]

_KINDS = frozenset("biufc")
# What NumPy's functions do besides computing.
_OUTSIDE = frozenset(
    {
        "fromfile", "load", "save", "savez", "savez_compressed", "savetxt", "loadtxt", "genfromtxt", "fromregex", "memmap",
        "seterr", "geterr", "seterrcall", "geterrcall", "setbufsize", "getbufsize", "set_printoptions", "get_printoptions",
        "printoptions", "show_config", "show_runtime", "info", "test", "tofile", "dump", "setflags", "copyto", "place", "put",
        "putmask", "put_along_axis", "fill_diagonal",
    }
)  # fmt: skip
_CHANGING = frozenset({"sort", "fill", "resize", "put", "partition", "setfield", "byteswap"})
_LASTING_STEPS = frozenset({"global", "module", "cell", "closure", "instance_dict"})
# Larger arrays from outside are not compared in each call.
_LARGEST = 4096


def is_numpy_value(value: Any) -> bool:
    """Whether a `NumpyVariable` may stand for it."""
    if type(value).__module__.partition(".")[0] != "numpy":
        return False
    numpy: Any = sys.modules["numpy"]
    if isinstance(value, numpy.dtype):
        return value.kind in _KINDS
    if isinstance(value, numpy.generic) or type(value) is numpy.ndarray:
        return value.dtype.kind in _KINDS
    return isinstance(value, numpy.finfo | numpy.iinfo)


def is_numpy_call(value: Any) -> bool:
    """Whether a function or class of NumPy's depends on its arguments only, and changes nothing but arrays."""
    kind = type(value)
    module = kind.__module__ if kind.__module__ == "numpy" else getattr(value, "__module__", None)
    if not isinstance(module, str) or module.partition(".")[0] != "numpy":
        return False
    numpy: Any = sys.modules["numpy"]
    if isinstance(value, type):
        return issubclass(value, numpy.generic | numpy.dtype | numpy.finfo | numpy.iinfo)
    function = isinstance(value, types.FunctionType | types.BuiltinFunctionType)
    if not function and not isinstance(value, numpy.ufunc) and kind is not type(numpy.sum):
        return False
    name = getattr(value, "__name__", "")
    return not module.startswith("numpy.random") and name not in _OUTSIDE


class NumpyVariable(Variable):
    """Such an object. Arrays are the trace's own; one from outside is a copy that cannot be written to."""

    __slots__ = ("value",)

    def __init__(self, value: Any, source: Source | None = None) -> None:
        super().__init__(source)
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def describe(self) -> str:
        return f"a NumPy {type(self.value).__name__}"

    def is_scalar(self) -> bool:
        """Whether a Python number has its value exactly."""
        numpy: Any = sys.modules["numpy"]
        return isinstance(self.value, numpy.generic) and isinstance(
            self.value.item(), bool | int | float | complex
        )

    def is_number(self) -> bool:
        """Whether tensors take it for a Python number."""
        return self.is_scalar() and self.value.dtype.kind != "b"

    def raw(self) -> Any:
        if not self.is_number():
            raise NotConstantError
        return self.value.item()

    def key(self) -> Any:
        return self.value if type(self.value).__hash__ is not None else self

    def real_object(self) -> Any:
        return self.value

    def truth(self, tx: Tracer) -> bool:
        found = tx.call_python(bool, [self.value], {})
        return bool(tx.raw(found))

    def getattr(self, tx: Tracer, name: str) -> Variable:
        try:
            value = getattr(self.value, name)
        except AttributeError as error:
            tx.raise_(AttributeError, *error.args)
        if callable(value) and not isinstance(value, type):
            return MethodVariable(self, name)
        return tx.from_raw(value)

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name in _OUTSIDE or not hasattr(self.value, name):
            unknown(f"method {name!r} of {self.describe()}")
        if name in _CHANGING:
            tx.mutated(self)
        return call_numpy(tx, getattr(self.value, name), args, kwargs)

    def length(self, tx: Tracer) -> Variable:
        return tx.call_python(len, [self.value], {})

    def iterate(self, tx: Tracer) -> Iterator:
        return SequenceIterator(tx.unpack(tx.call_python(list, [self.value], {})))

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        return call_numpy(tx, operator.getitem, [self, key], {})

    def setitem(self, tx: Tracer, key: Variable, value: Variable) -> None:
        tx.mutated(self)
        call_numpy(tx, operator.setitem, [self, key, value], {})

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        return call_numpy(tx, operator.contains, [self, item], {})

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        function = getattr(operator, f"{operation}_" if operation in ("and", "or") else operation)
        if operation[0] == "i" and operation != "invert":
            tx.mutated(self)
        return call_numpy(tx, function, [other, self] if reflected else [self, other], {})

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        return call_numpy(tx, getattr(operator, operation), [self, other], {})

    def unary(self, tx: Tracer, operation: str) -> Variable:
        return tx.call_python(getattr(operator, operation), [self.value], {})


class SymbolicNumpyInt(SymIntVariable):
    """A NumPy integer that is not the same in every call."""

    __slots__ = ()

    def python_type(self) -> type:
        numpy: Any = sys.modules["numpy"]
        kind: type = numpy.int64
        return kind

    def fixed(self) -> Any:
        return NumpyVariable(self.python_type()(int(self.value)))

    def getattr(self, tx: Tracer, name: str) -> Variable:
        return self.fixed().getattr(tx, name)  # type: ignore[no-any-return]

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        return self.fixed().compare(tx, operation, other)  # type: ignore[no-any-return]

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        whole = isinstance(other, SymIntVariable) or (
            isinstance(other, Constant) and type(other.value) is int
        )
        if not whole or operation not in ("add", "sub", "mul"):
            return self.fixed().binary(tx, operation, other, reflected)  # type: ignore[no-any-return]
        a, b = (other.value, self.value) if reflected else (self.value, other.value)  # type: ignore[attr-defined]
        return SymbolicNumpyInt(getattr(operator, operation)(a, b))

    def unary(self, tx: Tracer, operation: str) -> Variable:
        return (
            SymbolicNumpyInt(0 - self.value) if operation == "neg" else super().unary(tx, operation)
        )


def _product(tx: Tracer, args: list[Variable]) -> Variable | None:
    """numpy.prod(sizes) of which some are symbolic; None for others."""
    given = tx.realize(args[0])
    if not isinstance(given, SequenceVariable):
        return None
    items = given.realized(tx)
    if not any(type(x) is SymIntVariable for x in items):
        return None
    result: Any = 1
    for x in items:
        if type(x) is not SymIntVariable and not (isinstance(x, Constant) and type(x.value) is int):
            return None
        result = result * x.value
    return SymbolicNumpyInt(result)


def call_numpy(
    tx: Tracer, function: Any, args: list[Variable], kwargs: dict[str, Variable]
) -> Variable:
    """Call it now; breaks where an argument is known when the program runs only."""
    if getattr(function, "__name__", "") == "prod" and len(args) == 1 and not kwargs:
        product = _product(tx, args)
        if product is not None:
            return product
    values = [_plain(tx, a) for a in args]
    named = {k: _plain(tx, v) for k, v in kwargs.items()}
    try:
        return tx.call_python(function, values, named)
    except Raised:
        numpy: Any = sys.modules["numpy"]
        arrays = [v for v in (*values, *named.values()) if isinstance(v, numpy.ndarray)]
        owner = getattr(function, "__self__", None)
        if any(not a.flags.writeable for a in (*arrays, owner) if isinstance(a, numpy.ndarray)):
            raise break_trace("numpy", "an array from outside may be written to") from None
        raise


def _plain(tx: Tracer, variable: Variable) -> Any:
    variable = tx.realize(variable)
    if isinstance(variable, NumpyVariable | Constant | RangeVariable):
        return variable.value
    if isinstance(variable, SymIntVariable):
        return variable.fixed().value
    if isinstance(variable, SequenceVariable):
        values = [_plain(tx, item) for item in variable.items]
        return values if isinstance(variable, ListVariable) else tuple(values)
    if isinstance(variable, DictVariable):
        return {_plain(tx, k): _plain(tx, v) for k, v in variable.entries.values()}
    if isinstance(variable, SliceVariable):
        return slice(*[_plain(tx, part) for part in variable.parts])
    if isinstance(variable, ExistingObject) and isinstance(variable.value, type):
        return variable.value
    raise break_trace("numpy", f"a NumPy function of {variable.describe()}")


class OutsideArray(NumpyVariable):
    """An array from outside. Its elements are guarded, in a copy that cannot be written to, when something asks for `value`; tensors of it are inputs."""

    __slots__ = ("_copy", "_shared", "array", "given", "tx")

    def __init__(self, tx: Tracer, array: Any, source: Source, given: bool) -> None:
        Variable.__init__(self, source)
        self.tx = tx
        self.array = array
        self.given = given
        self._copy: Any = None
        self._shared: Any = None

    @property
    def value(self) -> Any:
        if self._copy is None:
            self._copy = self._known()
        return self._copy

    def _known(self) -> Any:
        tx, array = self.tx, self.array
        assert self.source is not None
        if array.nbytes > _LARGEST or self.given:
            raise break_trace("numpy", f"an array of {array.nbytes} bytes from outside")
        content = array.tobytes()
        if tx.dynamic.history.changes(self.source, content) >= config.recompile_limit // 2:
            raise break_trace("numpy", "an array from outside that changes")
        for name in ("shape", "strides"):
            tx.guard((*self.source, ("attr", name)), "EQUALS", getattr(array, name))
        tx.guard((*self.source, ("attr", "tobytes"), ("call", ((), ()))), "EQUALS", content)
        copied = array.copy("K")
        copied.setflags(write=False)
        tx.arrays.append((self, array))
        tx.lasting_values[id(copied)] = self
        tx.keep.append(copied)
        return copied

    def tensor(self, tx: Tracer) -> Variable:
        """A tensor on the array's memory, which is an input of the graph."""
        assert self.source is not None
        if self._shared is not None:
            return tx.from_raw(tx.operate("detach", self._shared.fake))
        flag = (*self.source, ("attr", "flags"), ("attr", "writeable"))
        tx.guard(flag, "EQUALS", self.array.flags.writeable)
        if not self.array.flags.writeable:
            raise break_trace("numpy", "a tensor of an array that cannot be written to")
        real = tx.operation(native.from_numpy, self.array)
        tx.arrays.append((self, self.array))
        source = (*_FROM_NUMPY, ("call", ((("source", self.source),), ())))
        self._shared = tx.tensor_input(real, source)
        return self._shared  # type: ignore[no-any-return]

    def describe(self) -> str:
        return "a NumPy ndarray from outside"

    def python_type(self) -> type:
        return type(self.array)

    def is_scalar(self) -> bool:
        return False

    def key(self) -> Any:
        return self

    def real_object(self) -> Any:
        return self.array

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in ("shape", "strides", "ndim", "size", "nbytes"):
            path = (*self.source, ("attr", name))  # type: ignore[misc]
            tx.guard(path, "EQUALS", getattr(self.array, name))
        elif name not in ("dtype", "itemsize"):
            return super().getattr(tx, name)
        return tx.from_raw(getattr(self.array, name))


_FROM_NUMPY: Source = (("module", "argand_c10._C"), ("attr", "from_numpy"))


def wrap_numpy(tx: Tracer, value: Any, source: Source) -> Variable:
    """The variable of such an object from outside: guarded by its elements."""
    numpy: Any = sys.modules["numpy"]
    # An array that is given, or a number that a broken frame has just computed, is most likely another one in each call.
    root = source[0]
    given = not any(step[0] in _LASTING_STEPS for step in source)
    computed = root[0] == "arg" and tx.root.code.co_varnames[root[1]].startswith(".stack")
    limits = isinstance(value, numpy.finfo | numpy.iinfo)
    whole = type(value) is numpy.ndarray
    if (computed and not whole) or limits or not is_numpy_value(value):
        raise break_trace("numpy", f"a {type(value).__name__}")
    tx.guard(source, "TYPE", type(value))
    if isinstance(value, numpy.dtype):
        tx.guard((*source, ("attr", "str")), "EQUALS", value.str)
        return NumpyVariable(value, source)
    if whole:
        tx.guard((*source, ("attr", "dtype"), ("attr", "str")), "EQUALS", value.dtype.str)
        return OutsideArray(tx, value, source, given)
    tx.guard((*source, ("attr", "tobytes"), ("call", ((), ()))), "EQUALS", value.tobytes())
    return NumpyVariable(value, source)


def shares_memory(array: Any, tensor: Any) -> bool:
    """Whether an array may lie on the memory of a tensor, or both on another array's."""
    if tensor.device.type != "cpu" or tensor.layout is not argand_c10.strided:
        return False
    owner = array
    while isinstance(owner.base, type(owner)):
        owner = owner.base
    storage = tensor.untyped_storage()
    place = array.ctypes.data - storage.data_ptr()
    other = tensor.data_ptr() - owner.ctypes.data
    return bool(0 <= place < storage.nbytes() or 0 <= other < owner.nbytes)


def array_constant(tx: Tracer, array: NumpyVariable) -> Any:
    """A tensor with the elements that the array has now."""
    made = tx.operation(native.from_numpy, array.value.copy("K"))
    return tx.operation(tx.builder.constant, made, literal=True)


def numpy_result(tx: Tracer, value: Any) -> Variable:
    """The variable of what NumPy has given; the same array gives the same variable."""
    known = tx.lasting_values.get(id(value))
    if isinstance(known, NumpyVariable):
        return known
    made = NumpyVariable(value)
    tx.born(made)
    _keep_array(tx, made)
    return made


def _keep_array(tx: Tracer, made: NumpyVariable) -> None:
    if made.python_type().__name__ == "ndarray":
        tx.lasting_values[id(made.value)] = made
        tx.keep.append(made.value)
