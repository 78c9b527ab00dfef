"""Functions that `functools.lru_cache` has made."""

from __future__ import annotations

import functools
import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import argand_c10
from argand_c10 import Operator
from argand_dynamo._C import is_constant
from argand_dynamo.trust import is_trusted
from argand_dynamo.variables.base import (
    MISSING,
    ExistingObject,
    Iterator,
    Source,
    Variable,
    reachable,
    unknown,
)
from argand_dynamo.variables.classes import ClassVariable
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.functions import FunctionVariable
from argand_dynamo.variables.numpy_objects import NumpyVariable
from argand_dynamo.variables.sequences import TupleVariable
from argand_dynamo.variables.tensor import TensorVariable
from argand_fx import Node
from argand_fx.effects import draws_random
from argand_fx.shapes import FakeTensor

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["CACHED_FUNCTION", "CachedFunctionVariable", "Sealed"]

CACHED_FUNCTION: type = type(functools.lru_cache(lambda: None))


@dataclass(frozen=True, slots=True)
class Sealed:
    """What stands for an object that a cache keeps; of a tensor its memory, as it was then."""

    variable: Variable
    storage: Any
    version: int | None


class CachedFunctionVariable(ExistingObject):
    """What `functools.lru_cache` makes.

    A call whose arguments exist is part of the path to what it gives: it is made while tracing, and with the guards in each call, as
    eager execution makes it. In other calls the function inside is traced. What it makes then stands for what the cache keeps: only
    its contents may be used.
    """

    __slots__ = ("function",)

    def __init__(self, value: Any, function: Variable, source: Source | None) -> None:
        super().__init__(value, source)
        self.function = function

    def describe(self) -> str:
        return f"the cache of {self.function.describe()}"

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in ("__wrapped__", "__name__", "__qualname__", "__module__"):
            return self.function if name == "__wrapped__" else self.function.getattr(tx, name)
        return super().getattr(tx, name)

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        kept = self._kept(tx, args, kwargs)
        if kept is not None:
            return kept
        for argument in (*args, *kwargs.values()):
            _check_hashable(tx, argument)
        before, changes = set(tx.graph.nodes), tx.changes
        result = self.function.call(tx, args, kwargs)
        if tx.changes != changes or not _only_computes(tx, before):
            unknown(f"a call of {self.describe()} that does more than compute, once")
        _seal(tx, result)
        return result

    def _kept(
        self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable | None:
        """What the cache gives, by a path; None if the call has none, or raises."""
        if (
            self.source is None
            or is_trusted(getattr(self.value, "__module__", None))
            or self.value.cache_info().maxsize == 0
        ):
            return None
        values: list[Any] = []
        steps: list[tuple[Any, ...]] = []
        for argument in (*args, *kwargs.values()):
            given = _existing(tx, argument)
            if given is None:
                return None
            steps.append(given[0])
            values.append(given[1])
        if not tx.is_undisturbed() and (kwargs or not _holds(self.value, values)):
            return None
        by_place = len(args)
        try:
            found = self.value(
                *values[:by_place], **dict(zip(kwargs, values[by_place:], strict=True))
            )
        except Exception:
            return None
        return tx.wrap(found, (*self.source, ("call", (tuple(steps), tuple(kwargs)))))


def _holds(cached: Any, values: list[Any]) -> bool:
    """Whether a cache has the result of these arguments, so that a call runs nothing."""
    key = values[0] if len(values) == 1 and type(values[0]) in (int, str) else tuple(values)
    tables = [x for x in gc.get_referents(cached) if type(x) is dict and x is not cached.__dict__]
    if cached.cache_info().maxsize is None:
        return any(key in table for table in tables)
    # There are dicts among the results, too.
    return any(type(table.get(key)).__name__ == "_lru_list_elem" for table in tables)


def _check_hashable(tx: Tracer, variable: Variable) -> None:
    variable = tx.realize(variable)
    kind = variable.python_type()
    if kind.__hash__ is None:
        tx.raise_(TypeError, f"unhashable type: '{kind.__name__}'")
    if isinstance(variable, TupleVariable):
        for item in variable.items:
            _check_hashable(tx, item)


def _existing(tx: Tracer, variable: Variable) -> tuple[tuple[Any, ...], Any] | None:
    """What a path says of an argument, and the argument itself; None for one that only the trace has."""
    variable = tx.realize(variable)
    if isinstance(variable, Constant):
        return _given(variable.value) if is_constant(variable.value) else None
    if isinstance(variable, TupleVariable) and variable.cls in (tuple, argand_c10.Size):
        items = [_existing(tx, item) for item in variable.items]
        if not all(item is not None and item[0][0] == "const" for item in items):
            return None
        return _given(variable.cls([item[1] for item in items if item is not None]))
    source, value = variable.source, variable.real_object()
    if source is None and isinstance(variable, ClassVariable):
        source = tx.class_source(value)
    return None if source is None or value is MISSING else (("source", source), value)


def _given(value: Any) -> tuple[tuple[Any, ...], Any]:
    """A constant argument; its text tells it from equal ones of other types, as 1 from True."""
    return ("const", value, repr(value)), value


def _only_computes(tx: Tracer, before: set[Node]) -> bool:
    """Whether nodes that are no longer those `before` draw no random numbers, write to what they have made only and read no tensor from outside, as what it held at the first call would stay."""
    made = [node for node in tx.graph.nodes if node not in before]
    own = {id(storage) for node in made if node.op == "call_function" for storage in _memory(node)}
    for node in before:
        own -= {id(storage) for storage in _memory(node)}
    outside = {id(s) for node in tx.graph.nodes if _is_outside(tx, node) for s in _memory(node)}
    for node in made:
        if any(id(s) in outside for m in node.all_input_nodes for s in _memory(m)):
            return False
        op: Any = node.target
        if node.op != "call_function" or not node.is_impure():
            continue
        if not isinstance(op, Operator) or draws_random(op):
            return False
        if any(id(s) not in own for m in node.all_input_nodes for s in _memory(m)):
            return False
    return True


def _is_outside(tx: Tracer, node: Node) -> bool:
    return node.op != "call_function" and str(node.target) not in tx.builder.literals


def _memory(node: Node) -> list[Any]:
    value = node.meta.get("val")
    return [
        x.storage
        for x in (value if isinstance(value, tuple) else (value,))
        if isinstance(x, FakeTensor)
    ]


def _lasts(tx: Tracer, variable: Variable) -> bool:
    """Whether to make the object anew is the same as to keep it."""
    if isinstance(variable, TupleVariable) and variable.source is None:
        return all(_lasts(tx, tx.realize(item)) for item in variable.items)
    if isinstance(variable, FunctionVariable):
        return variable.value is not MISSING
    if isinstance(variable, NumpyVariable) and variable.is_scalar():
        return True
    return variable.source is not None or isinstance(variable, Constant | ExistingObject)


def _seal(tx: Tracer, result: Variable) -> None:
    """Neither the object nor what is in it may be changed, told from another or leave the trace."""
    if _lasts(tx, result):
        return
    for variable in reachable([result]).values():
        if isinstance(variable, Iterator | FunctionVariable) and not _lasts(tx, variable):
            unknown(f"{variable.describe()} out of a cache, which is made once")
        if isinstance(variable, TensorVariable) and variable.fake.requires_grad:
            unknown("a tensor with a gradient out of a cache, which is made once")
        if variable.source is None and not _lasts(tx, variable):
            memory = variable.fake.storage if isinstance(variable, TensorVariable) else None
            tx.sealed[id(variable)] = Sealed(variable, memory, memory and memory.version)
            tx.born(variable)
