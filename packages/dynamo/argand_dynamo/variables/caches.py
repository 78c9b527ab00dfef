"""Functions that `functools.lru_cache` has made."""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import argand_c10
from argand_autograd.graph_ops import set_grad_mode
from argand_c10 import Operator
from argand_dynamo._C import CompiledFunction, cache_holds, is_constant
from argand_dynamo.dynamic import DynamicShapes
from argand_dynamo.exceptions import PlainOnce, Raised
from argand_dynamo.history import FrameHistory
from argand_dynamo.trust import is_trusted
from argand_dynamo.variables.base import (
    MISSING,
    ExistingObject,
    Iterator,
    LazyVariable,
    Source,
    Variable,
    reachable,
    unknown,
)
from argand_dynamo.variables.classes import ClassVariable, PythonModuleVariable
from argand_dynamo.variables.constant import Constant, SymIntVariable
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

    A call whose arguments exist is part of the path to what it gives: ("held", ...) takes what the cache has, and ("call", ...) runs the function
    where it has nothing, with the guards in each call, which asks that it only computes and that nothing was changed before. Where neither
    holds, a call of the frame is left to Python, which fills the cache as eager execution does.

    In other calls the function inside is traced. What it makes then stands for what the cache keeps: only its contents may be used.
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
        if tx.probing:
            return self.function.call(tx, args, kwargs)
        key = self._numbers(tx, args, kwargs)
        known = None if key is None else tx.cached_calls.get(key)
        if known is not None:
            return known
        self._check_room(tx)
        before, changes, guards = set(tx.graph.nodes), tx.changes, set(tx.guards)
        outer, tx.looked_up = tx.looked_up, []
        try:
            result = self.function.call(tx, args, kwargs)
        finally:
            looked_up, tx.looked_up = tx.looked_up, outer
            if outer is not None:
                outer += looked_up
        given = [tx.realize(argument) for argument in (*args, *kwargs.values())]
        if not tx.exporting and not any(isinstance(v, TensorVariable) for v in given):
            paths = [argument.source for argument in given if argument.source is not None]
            if _reads_state(tx, guards, looked_up, paths):
                kept = self._kept(tx, args, kwargs, fixed=True) if tx.whole else None
                if kept is None:
                    unknown(f"a call of {self.describe()}, which reads what may change")
                return kept
        if tx.changes != changes or not _only_computes(tx, before):
            unknown(f"a call of {self.describe()} that does more than compute, once")
        _seal(tx, result)
        if key is not None:
            tx.cached_calls[key] = result
        return result

    def _numbers(
        self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]
    ) -> tuple[Source, Any] | None:
        """What stands for a call on constants and symbolic integers among those of this trace; None for other calls."""
        texts = []
        for argument in map(tx.realize, (*args, *kwargs.values())):
            if not isinstance(argument, Constant | SymIntVariable):
                return None
            texts.append(f"{argument.python_type()} {argument.value!r}")
        return None if self.source is None else (self.source, (tuple(texts), tuple(kwargs)))

    def _kept(
        self,
        tx: Tracer,
        args: list[Variable],
        kwargs: dict[str, Variable],
        fixed: bool = False,
    ) -> Variable | None:
        """What the cache gives, by a path; None if the call has none, or raises. `fixed`: symbolic integers are their values."""
        if (
            self.source is None
            or is_trusted(getattr(self.value, "__module__", None))
            or self.value.cache_info().maxsize == 0
        ):
            return None
        given = [_existing(tx, argument, fixed) for argument in (*args, *kwargs.values())]
        steps = tuple([found[0] for found in given if found is not None])
        if len(steps) < len(given):
            return None
        key = (self.source, (steps, tuple(kwargs)))
        known = tx.cached_calls.get(key)
        if known is None:
            self._check_room(tx)
            values = tuple([found[1] for found in given if found is not None])
            if tx.probing and not cache_holds(self.value, values, tuple(kwargs)):
                known = self.function.call(tx, args, kwargs)  # once, as where it calls itself
            else:
                known = self._look_up(tx, key, values)
            if known is not None:
                tx.cached_calls[key] = known
        if known is not None and self.value.cache_info().maxsize is not None and not tx.probing:
            tx.cache_order.pop(key, None)
            tx.cache_order[key] = None
        return known

    def _check_room(self, tx: Tracer) -> None:
        """Break where a cache forgets what it was called with in this trace, in the order of all of its calls."""
        size = self.value.cache_info().maxsize
        if size is not None and sum(path == self.source for path, _ in tx.cached_calls) >= size:
            unknown(f"calls of {self.describe()} with more arguments than it keeps results")

    def _look_up(
        self, tx: Tracer, key: tuple[Source, Any], values: tuple[Any, ...]
    ) -> Variable | None:
        source, payload = key
        names = payload[1]
        held = cache_holds(self.value, values, names)
        undisturbed = tx.is_undisturbed()
        computes = undisturbed and not tx.probing and self._computes(tx, values, names)
        if not held and not computes:
            if tx.exporting and not undisturbed:
                return None
            if not tx.exporting:
                self._wait(tx)
        by_place = len(values) - len(names)
        try:
            found = self.value(
                *values[:by_place], **dict(zip(names, values[by_place:], strict=True))
            )
        except Exception:
            return None
        return tx.wrap(found, (*source, ("call" if computes else "held", payload)))

    def _wait(self, tx: Tracer) -> NoReturn:
        what = f"the first call of {self.describe()}, which may do more than compute"
        if tx.may_wait:
            raise PlainOnce(what, tx.user_location())
        unknown(what)

    def _computes(self, tx: Tracer, values: tuple[Any, ...], names: tuple[str, ...]) -> bool:
        """Whether a call changes nothing and draws nothing, as a trace of it alone tells."""
        function, by_place = self.value.__wrapped__, len(values) - len(names)
        if not isinstance(function, types.FunctionType):
            return False
        named = dict(zip(names, values[by_place:], strict=True))
        bound = CompiledFunction(function).bind(values[:by_place], named)
        if bound is None or function.__code__.co_flags & 0x2A0:
            return False
        probe = type(tx)(function, DynamicShapes(FrameHistory(), False))
        probe.probing = True
        try:
            probe.trace(list(bound))
        except Raised:
            pass
        except Exception:
            return False
        return not probe.changes and _only_computes(probe, set(), reads=True)


def _reads_state(
    tx: Tracer, before: set[Any], looked_up: list[tuple[Variable, Source]], given: list[Source]
) -> bool:
    """Whether a function reads what its cache keeps as it was: variables, entries and attributes, but for those of arguments.

    Args:
        before: the keys of the guards that were there before its trace.
        looked_up: the variables from outside that it has read.
        given: the paths of its arguments.
    """
    roots = []
    for variable, source in looked_up:
        found = variable.realized if isinstance(variable, LazyVariable) else variable
        by_library = source[:1] and source[0][0] == "module" and is_trusted(source[0][1])
        if isinstance(found, Constant | SymIntVariable):
            lasts = by_library or isinstance(found.value, argand_c10.dtype)
            if not lasts and not _is_under(source, given):
                return True
        elif source and not isinstance(found, ClassVariable | PythonModuleVariable):
            roots.append(source)
    for key, (source, kind, _) in tx.guards.items():
        if kind in ("LEN", "DICT_KEYS") or (kind == "EQUALS" and _is_state(source)):
            if (key not in before or _is_under(source, roots)) and not _is_under(source, given):
                return True
    return False


def _is_under(source: Source, paths: list[Source]) -> bool:
    return any(source[: len(path)] == path for path in paths)


def _is_state(source: Source) -> bool:
    """Whether an entry or attribute is read, but for what a module defines."""
    defined = len(source) == 2 and source[0][0] == "module"
    return not defined and source[-1][0] in ("item", "dict_item", "instance_dict")


def _check_hashable(tx: Tracer, variable: Variable) -> None:
    variable = tx.realize(variable)
    kind = variable.python_type()
    if kind.__hash__ is None:
        tx.raise_(TypeError, f"unhashable type: '{kind.__name__}'")
    if isinstance(variable, TupleVariable):
        for item in variable.items:
            _check_hashable(tx, item)


def _existing(
    tx: Tracer, variable: Variable, fixed: bool = False
) -> tuple[tuple[Any, ...], Any] | None:
    """What a path says of an argument, and the argument itself; None for one that only the trace has."""
    variable = tx.realize(variable)
    if fixed and isinstance(variable, SymIntVariable):
        variable = variable.fixed()
    if isinstance(variable, Constant):
        return _given(variable.value) if is_constant(variable.value) else None
    if isinstance(variable, TupleVariable) and variable.cls in (tuple, argand_c10.Size):
        items = [_existing(tx, item, fixed) for item in variable.items]
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


def _only_computes(tx: Tracer, before: set[Node], reads: bool = False) -> bool:
    """Whether nodes that are no longer those `before` draw no random numbers and write to what they have made only.

    Without `reads` they read no tensor from outside, either, as what it held at the first call would stay.
    """
    made = [node for node in tx.graph.nodes if node not in before]
    own = {id(storage) for node in made if node.op == "call_function" for storage in _memory(node)}
    outside = {id(s) for node in tx.graph.nodes if _is_outside(tx, node) for s in _memory(node)}
    own -= outside
    for node in before:
        own -= {id(storage) for storage in _memory(node)}
    for node in made:
        memory = {id(s) for m in node.all_input_nodes for s in _memory(m)}
        if not reads and memory & outside:
            return False
        op: Any = node.target
        if node.op != "call_function" or not node.is_impure() or op is set_grad_mode:
            continue
        if not isinstance(op, Operator) or draws_random(op) or memory - own:
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
