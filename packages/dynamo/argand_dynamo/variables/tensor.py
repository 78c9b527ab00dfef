"""Tensors: a FakeTensor and, through it, the graph node that makes the value."""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import argand_c10
from argand_c10 import Operator
from argand_c10._C import OperatorMethod
from argand_c10.rules import definitions
from argand_dynamo.exceptions import break_trace
from argand_dynamo.variables.base import (
    MISSING,
    ExistingObject,
    Iterator,
    MethodVariable,
    Source,
    Variable,
    unknown,
)
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.iterators import SequenceIterator
from argand_dynamo.variables.numpy_objects import NumpyVariable, array_constant
from argand_dynamo.variables.sequences import SequenceVariable, TupleVariable
from argand_fx.schema import schema_of
from argand_fx.shapes import known_elements

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["OperatorVariable", "TensorVariable"]

Tensor = argand_c10.Tensor
_DEFINITIONS: Source = (("module", "argand_c10.rules"), ("attr", "definitions"))
# Attributes that are plain facts of a FakeTensor.
_FACTS = frozenset(
    {
        "shape", "dtype", "device", "ndim", "itemsize", "nbytes", "layout", "is_cpu", "is_meta",
        "is_cuda", "is_sparse", "is_quantized",
    }
)  # fmt: skip
_FACT_METHODS = frozenset(
    {
        "size", "dim", "ndimension", "numel", "nelement", "stride", "is_contiguous", "element_size",
        "storage_offset", "is_floating_point", "is_complex", "is_signed", "is_same_size", "get_device",
    }
)  # fmt: skip
_DATA = frozenset({"item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__array__", "data_ptr"})  # fmt: skip
_NUMBERS = frozenset({"item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__complex__"})  # fmt: skip
_VIEWS = frozenset({"T", "mT", "H", "mH", "real", "imag"})
_IN_PLACE = frozenset({"iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "ilshift", "irshift", "iand", "ior", "ixor"})  # fmt: skip
_BINARY: dict[str, Any] = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "xor", "matmul")
} | {"and": operator.and_, "or": operator.or_, **{n: getattr(operator, n) for n in _IN_PLACE}}  # fmt: skip


class TensorVariable(Variable):
    """A tensor of the traced program.

    `cls` is its exact type (`Parameter`, ...). `pending` holds attributes set by the trace; `real` is the tensor itself if it is an input.
    """

    __slots__ = ("cls", "fake", "pending", "real")

    def __init__(
        self, fake: Any, source: Source | None = None, cls: type = Tensor, real: Any = MISSING
    ) -> None:
        self.fake = fake
        self.source = source
        self.cls = cls
        self.real = real

    def python_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"a tensor of shape {[str(n) for n in self.fake.shape]}"

    def raw(self) -> Any:
        return self.fake

    def key(self) -> Any:
        return self

    def real_object(self) -> Any:
        return self.real

    def known(self) -> Any:
        """The tensor itself, where its elements follow from the trace; else None."""
        return known_elements(self.fake)

    def truth(self, tx: Tracer) -> bool:
        known = self.known()
        if known is None:
            raise break_trace("data_dependent_branch", "the truth of a tensor")
        return bool(tx.raw(tx.call_python(bool, [known], {})))

    def length(self, tx: Tracer) -> Variable:
        if not len(self.fake.shape):
            tx.raise_(TypeError, "len() of a 0-d tensor")
        return tx.from_raw(self.fake.shape[0])

    def iterate(self, tx: Tracer) -> Iterator:
        if not len(self.fake.shape):
            tx.raise_(TypeError, "iteration over a 0-d tensor")
        count = int(self.fake.shape[0])
        if count > 1024:
            unknown("iteration over a tensor of more than 1024 rows")
        return SequenceIterator([tx.from_raw(row) for row in tx.operate("unbind", self.fake)])

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in _FACTS:
            return tx.from_raw(getattr(self.fake, name))
        if name in _VIEWS:
            return tx.from_raw(tx.operation(getattr, self.fake, name))
        if name == "requires_grad":
            return Constant(bool(self.fake.requires_grad))
        if name == "__class__":
            return tx.from_raw(self.cls)
        if name == "is_leaf":
            if self.source is None and not self.fake.requires_grad:
                return Constant(True)
            raise break_trace("tensor_attribute", "Tensor.is_leaf")
        if name == "grad" and self.real is not MISSING:
            return tx.tensor_grad(self)
        if name == "data":
            # The same memory without history, and without a version of its own: `detach` has its numbers.
            raise break_trace("tensor_attribute", "Tensor.data")
        found = tx.class_attribute(self.cls, name)
        if found is None:
            return self._own_attribute(tx, name)
        if isinstance(found, types.FunctionType) and not hasattr(type(self.fake), name):
            return tx.bind_function(found, self)
        if isinstance(found, property | types.GetSetDescriptorType):
            raise break_trace("tensor_attribute", f"Tensor.{name}")
        return MethodVariable(self, name)

    def _own_attribute(self, tx: Tracer, name: str) -> Variable:
        if self.real is MISSING or self.source is None:
            tx.raise_(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")
        fields = self.real.__dict__
        if name not in fields:
            tx.guard(self.source, "NO_ATTR", name)
            tx.raise_(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")
        return tx.wrap(fields[name], (*self.source, ("instance_dict", name)))

    def setattr(self, tx: Tracer, name: str, value: Variable) -> None:
        if name in ("real", "imag"):
            part = tx.operation(getattr, self.fake, name)
            tx.operate("copy_", part, tx.raw(value))
            return
        raise break_trace("tensor_attribute", f"assignment to Tensor.{name}")

    def getitem(self, tx: Tracer, key: Variable) -> Variable:
        return tx.from_raw(tx.operation(operator.getitem, self.fake, _place(tx, key)))

    def setitem(self, tx: Tracer, key: Variable, value: Variable) -> None:
        tx.operation(operator.setitem, self.fake, _place(tx, key), tx.raw(value))

    def contains(self, tx: Tracer, item: Variable) -> Variable:
        raise break_trace("data_dependent_value", "'in' on a tensor")

    def binary(
        self, tx: Tracer, operation: str, other: Variable, reflected: bool = False
    ) -> Variable | None:
        function = _BINARY.get(operation)
        if function is None:
            return None
        theirs = tx.raw_operand(other)
        if theirs is MISSING:
            return None
        a, b = (theirs, self.fake) if reflected else (self.fake, theirs)
        return tx.from_raw(tx.operation(function, a, b))

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        theirs = tx.raw_operand(other)
        if theirs is MISSING or theirs is None:
            return None
        return tx.from_raw(tx.operation(getattr(operator, operation), self.fake, theirs))

    def unary(self, tx: Tracer, operation: str) -> Variable:
        return tx.from_raw(tx.operation(getattr(operator, operation), self.fake))

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name in _DATA:
            known = self.known() if name in _NUMBERS else None
            if known is not None:
                return tx.call_python(getattr(known, name), [tx.raw(a) for a in args], {})
            raise break_trace("data_dependent_value", f"Tensor.{name}()")
        if name in (
            "backward",
            "register_hook",
            "retain_grad",
            "register_post_accumulate_grad_hook",
        ):
            raise break_trace(
                "backward" if name == "backward" else "tensor_attribute", f"Tensor.{name}()"
            )
        if name == "requires_grad_" or name in (
            "set_",
            "detach_",
            "untyped_storage",
            "as_subclass",
        ):
            raise break_trace("tensor_attribute", f"Tensor.{name}()")
        if name == "_is_view" and self.source is not None:  # the fake of an input has no base
            raise break_trace("tensor_attribute", "Tensor._is_view()")
        found = getattr(self.cls, name, None)
        if isinstance(found, types.FunctionType):
            return tx.bind_function(found, self).call(tx, args, kwargs)
        raw_args = [tx.raw(a) for a in args]
        raw_kwargs = {k: tx.raw(v) for k, v in kwargs.items()}
        if name in _FACT_METHODS:
            if name == "storage_offset":
                self.fake.storage.offset_read = True
            return tx.from_raw(tx.operation(getattr(self.fake, name), *raw_args, **raw_kwargs))
        if isinstance(found, Operator | OperatorMethod):
            return tx.from_raw(tx.operate(found, self.fake, *raw_args, **raw_kwargs))
        method = getattr(self.fake, name, None)
        if method is None:
            raise break_trace("tensor_attribute", f"Tensor.{name}()")
        return tx.from_raw(tx.operation(method, *raw_args, **raw_kwargs))


def _tensors(tx: Tracer, values: Iterable[Variable]) -> list[TensorVariable]:
    """The tensors among values and in their sequences."""
    found: list[TensorVariable] = []
    for value in map(tx.realize, values):
        if isinstance(value, SequenceVariable):
            found += _tensors(tx, value.items)
        elif isinstance(value, TensorVariable):
            found.append(value)
    return found


def _check_custom(
    tx: Tracer, op: Operator, args: list[Variable], kwargs: dict[str, Variable]
) -> None:
    """Breaks where what the operator writes cannot become results of a graph: histories stay as they were, and memory may be shared."""
    schema = schema_of(op)
    if not schema.written:
        return
    given = dict(zip([a.name for a in schema.arguments], args, strict=False)) | kwargs
    names = [schema.arguments[i].name for i in schema.written]
    written = _tensors(tx, [given[name] for name in names if name in given])
    if tx.builder.grad_enabled and any(tensor.fake.requires_grad for tensor in written):
        raise break_trace("custom_operator", f"{op.name} writes into a tensor that requires grad")
    storages = [id(tensor.fake.storage) for tensor in _tensors(tx, given.values())]
    if any(storages.count(id(tensor.fake.storage)) > 1 for tensor in written):
        raise break_trace("custom_operator", f"{op.name} writes into memory of two arguments")


class OperatorVariable(ExistingObject):
    """A registered operator, or an unbound operator method of Tensor."""

    __slots__ = ()

    def describe(self) -> str:
        return f"operator {getattr(self.value, 'name', self.value)!r}"

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if not hasattr(self.value, name):
            tx.raise_(
                AttributeError, f"'{type(self.value).__name__}' object has no attribute '{name}'"
            )
        return tx.from_raw(getattr(self.value, name))

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        defined = definitions.get(self.value.name)
        if defined is not None:
            _check_custom(tx, self.value, args, kwargs)
            if defined.operator is not self.value:
                raise break_trace("custom_operator", f"{self.value.name} was defined anew")
            source = (*_DEFINITIONS, ("item", self.value.name))
            found = tx.wrap(defined, source)
            tx.realize(found.getattr(tx, "version"))
            tensors = _tensors(tx, [*args, *kwargs.values()])
            for kind, function in defined.regions.items():
                if tx.autocast.is_on(kind) and any(t.fake.device.type == kind for t in tensors):
                    place = (*source, ("attr", "regions"), ("item", kind))
                    return tx.wrap(function, place).call(tx, args, kwargs)
            if (
                defined.has_formula
                and tx.builder.grad_enabled
                and any(t.fake.requires_grad for t in tensors)
            ):
                return found.getattr(tx, "recorded").call(tx, args, kwargs)
        return tx.from_raw(
            tx.operate(
                self.value, *[tx.raw(a) for a in args], **{k: tx.raw(v) for k, v in kwargs.items()}
            )
        )


def _place(tx: Tracer, key: Variable) -> Any:
    """The index of an item; arrays are tensors there."""
    key = tx.realize(key)
    if isinstance(key, TupleVariable):
        return tuple([_place(tx, item) for item in key.items])
    if isinstance(key, NumpyVariable) and isinstance(key.value, sys.modules["numpy"].ndarray):
        return array_constant(tx, key)
    return tx.raw(key)
