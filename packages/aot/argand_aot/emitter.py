"""Adding functional operators to a graph, equal ones once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import argand_c10 as c10
from argand_aot.masks import MASKED
from argand_aot.values import Geometry, UnsupportedGraph, hint_of
from argand_c10 import Operator
from argand_fx.schema import bind, overload, schema_of
from argand_fx.shapes import FakeTensor, GraphBuilder
from argand_fx.symbolic import SymbolicValue

__all__ = ["Emitter", "split_arguments", "stays"]


def split_arguments(op: Operator, bound: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments in schema order as positional and keyword-only ones; trailing defaults are left out."""
    schema = schema_of(op)
    n = schema.positional
    while (
        n
        and schema.arguments[n - 1].has_default
        and _same(bound[n - 1], schema.arguments[n - 1].default)
    ):
        n -= 1
    keywords = {
        a.name: bound[i]
        for i, a in enumerate(schema.arguments)
        if i >= schema.positional and not (a.has_default and _same(bound[i], a.default))
    }
    return tuple(bound[:n]), keywords


def _same(x: Any, default: Any) -> bool:
    return x is default or (
        type(x) is type(default) and isinstance(x, (int, float, str, bool)) and x == default
    )


def stays(op: Operator) -> bool:
    """Whether every call counts: it draws random numbers, or has no results."""
    return op.is_random or schema_of(op).results == 0


def _key(x: Any) -> Any:
    """Equal for arguments that mean the same; numbers of different types and signs of zero are told apart."""
    if isinstance(x, FakeTensor):
        return ("tensor", id(x))
    if isinstance(x, (list, tuple)):
        return tuple([_key(item) for item in x])
    if isinstance(x, SymbolicValue):
        return ("symbolic", str(x))
    return (type(x), repr(x))


class Emitter:
    """Adds functional operators to the graph of a builder. A call that was made before gives the same result.

    Attributes:
        builder: the builder; no tensor of it requires grad, since derivatives are graph rewrites here.
    """

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self._made: dict[Any, Any] = {}
        self._kept: list[Any] = []  # arguments of keys: their ids must stay theirs

    def call(self, op: Operator, bound: Sequence[Any]) -> Any:
        """The results of an operator on fake tensors, given in schema order."""
        masked = MASKED.get(op.name)
        if masked is not None and (made := masked(self, *bound)) is not None:
            return made
        if stays(op):
            return self.new(op, bound)
        key = (op.name, _key(bound))
        found = self._made.get(key)
        if found is None:
            self._kept.append(bound)
            found = self._made[key] = self.new(op, bound)
        return found

    def new(self, op: Operator, bound: Sequence[Any]) -> Any:
        """As `call`, always by a node of its own."""
        return self.builder.call_bound(op, bound)

    def named(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """As `call`, by an operator's name and ordinary arguments."""
        op, bound = bind(c10.find_operator(name), args, kwargs)
        return self.call(op, bound)

    def unexpanded(
        self, name: str, bound: Sequence[Any], shape: Any, dtype: Any, device: Any
    ) -> FakeTensor:
        """A composite operator as one node: its contiguous result has the given sizes."""
        op = overload(name)
        key = (name, _key(bound))
        found = None if op.is_random else self._made.get(key)
        if found is None:
            self._kept.append(bound)
            found = self._made[key] = self._add(op, bound, shape, dtype, device)
        made: FakeTensor = found
        return made

    def _add(
        self, op: Operator, bound: Sequence[Any], shape: Any, dtype: Any, device: Any
    ) -> FakeTensor:
        args, kwargs = split_arguments(op, bound)
        result = self.builder.fake(shape, dtype, device=device)
        made: FakeTensor = self.builder.create(op, args, kwargs, result)
        return made

    def as_result(self, tensor: FakeTensor, geometry: Geometry) -> FakeTensor:
        """As `laid_out`, where users see it: with the same strides in dimensions of size 1 too."""
        made = self.laid_out(tensor, geometry)
        shape, strides = list(geometry.shape), list(made.stride())
        known = [n if isinstance(n, int) else None for n in shape]
        for i, wanted in enumerate(geometry.strides):
            if known[i] == 1:
                strides[i] = wanted
        if 0 in known or list(map(str, strides)) == list(map(str, made.stride())):
            return made
        result: FakeTensor = self.named("as_strided", made, shape, strides)
        return result

    def laid_out(self, tensor: FakeTensor, geometry: Geometry) -> FakeTensor:
        """`tensor`, with the strides of `geometry`; they must be those of a dense tensor.

        Raises:
            UnsupportedGraph: if they are not.
        """
        if same_strides(tensor.shape, tensor.stride(), geometry.strides):
            return tensor
        order = sorted(range(geometry.ndim), key=lambda i: (-hint_of(geometry.strides[i]), i))
        expected: Any = 1
        for i in reversed(order):
            if geometry.shape[i] != 1 and geometry.strides[i] != expected:
                raise UnsupportedGraph(
                    f"got a tensor of shape {list(geometry.shape)} with strides {list(geometry.strides)}, "
                    "expected one without gaps where its memory layout matters",
                    "call contiguous() on it",
                )
            expected = expected * geometry.shape[i]
        if order == list(range(geometry.ndim)):
            row_major: FakeTensor = self.named("clone", tensor, memory_format=0)
            return row_major
        inverse = [0] * len(order)
        for position, i in enumerate(order):
            inverse[i] = position
        dense = self.named("clone", self.named("permute", tensor, order), memory_format=0)
        result: FakeTensor = self.named("permute", dense, inverse)
        return result


def same_strides(shape: Any, a: Any, b: Any) -> bool:
    """Do these strides mean the same for a tensor of this shape?"""
    for size, x, y in zip(shape, a, b, strict=True):
        if isinstance(size, int):
            if size == 0:
                return True
            if size == 1:
                continue
        if not (x is y or str(x) == str(y)):
            return False
    return True
