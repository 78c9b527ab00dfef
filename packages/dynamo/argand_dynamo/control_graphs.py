"""Functions that a loop or a branch calls, traced into graphs of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from argand_dynamo.exceptions import break_trace
from argand_dynamo.variables.base import Variable
from argand_dynamo.variables.constant import Constant
from argand_dynamo.variables.dicts import DictVariable
from argand_dynamo.variables.sequences import ListVariable, TupleVariable
from argand_dynamo.variables.tensor import TensorVariable
from argand_fx import Graph, GraphModule, Node
from argand_fx.bindings import node_bindings, symbol_bindings
from argand_fx.shapes import FakeTensor, GraphBuilder
from argand_fx.symbolic import SymbolicValue, symbol_names

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["Leaf", "OwnGraph", "build", "check_alike", "fill", "flatten", "get_graph", "own_graph"]


class OwnGraph(GraphBuilder):
    """Takes the tensors of the graph around it as further inputs."""

    def __init__(self, outer: GraphBuilder) -> None:
        super().__init__(Graph(), outer.shape_env)
        self.grad_enabled = outer.grad_enabled
        self.autocast = outer.autocast
        self.outermost: GraphBuilder = outer.outermost if isinstance(outer, OwnGraph) else outer
        self.reads: dict[FakeTensor, Node] = {}
        self.inputs: list[Node] = []

    def argument(self, value: Any) -> Any:
        graph = self.graph
        assert graph is not None
        if type(value) is FakeTensor and value.node is not None and value.node.graph is not graph:
            found = self.reads.get(value)
            if found is None:
                found = self.reads[value] = self.enter(f"read{len(self.reads)}", value)
            return found
        return super().argument(value)

    def enter(self, name: str, value: FakeTensor) -> Node:
        """A further input, after the others."""
        graph = self.graph
        assert graph is not None
        first = next(iter(graph.nodes), None)
        if self.inputs:
            with graph.inserting_after(self.inputs[-1]):
                node = graph.placeholder(name)
        elif first is not None:
            with graph.inserting_before(first):
                node = graph.placeholder(name)
        else:
            node = graph.placeholder(name)
        node.meta["val"] = value
        self.inputs.append(node)
        return node

    def carry(self, tx: Tracer, like: FakeTensor, requires_grad: bool) -> TensorVariable:
        """An input that stands for a tensor like that one."""
        fake = self.fake(
            like.shape, like.dtype, strides=like.strides, device=like.device, requires_grad=requires_grad,
        )  # fmt: skip
        fake.node = self.enter(f"carried{len(self.inputs)}", fake)
        made = tx.tensors[fake] = TensorVariable(fake)
        return made


@contextmanager
def own_graph(tx: Tracer) -> Iterator[OwnGraph]:
    """Operators go to a graph of their own, also those on tensors of the graph around it."""
    outer = tx.builder
    tx.builder = inner = OwnGraph(outer)
    for fake in tx.tensors:
        fake.builder = inner
    try:
        yield inner
    finally:
        tx.builder = outer
        for fake in tx.tensors:
            if fake.builder is inner and (fake.node is None or fake.node.graph is not inner.graph):
                fake.builder = outer


def get_graph(
    tx: Tracer, builder: OwnGraph, results: Sequence[FakeTensor], name: str
) -> tuple[Node, tuple[FakeTensor, ...]]:
    """End a graph with these results; the node of the graph around it that reads it, and what it reads of that beside what is carried."""
    builder.output(tuple(results))
    assert builder.graph is not None
    _bind_symbols(tx, builder)
    module = GraphModule(dict(builder.constants), builder.graph, name)
    outer = tx.builder
    assert outer.graph is not None
    place = f"{name}{sum(key.startswith(name) for key in outer.constants)}"
    outer.constants[place] = module  # type: ignore[assignment]
    node = outer.graph.create_node("get_attr", place)
    node.meta["val"] = module
    return node, tuple(builder.reads)


def _bind_symbols(tx: Tracer, builder: OwnGraph) -> None:
    """Give the graph the inputs of the whole one whose sizes it uses."""
    assert builder.graph is not None
    used: dict[str, None] = {}
    for node in builder.graph.nodes:
        _symbols_in((node.args, node.kwargs), used)
    bound = symbol_bindings(builder.inputs)
    for name in used:
        if name in bound:
            continue
        for entry in tx.inputs:
            if isinstance(entry.value, FakeTensor) and name in node_bindings(entry.node):
                builder.argument(entry.value)
                bound = symbol_bindings(builder.inputs)
                break
        else:
            raise break_trace("branches", "an integer is read that is no size of a tensor")


def _symbols_in(value: Any, found: dict[str, None]) -> None:
    if isinstance(value, SymbolicValue):
        found.update(dict.fromkeys(symbol_names(value)))
    elif isinstance(value, tuple | list):
        for item in value:
            _symbols_in(item, found)
    elif isinstance(value, dict):
        _symbols_in(tuple(value.values()), found)
    elif isinstance(value, slice):
        _symbols_in((value.start, value.stop, value.step), found)


class Leaf:
    """Where a tensor stands in a structure."""


def flatten(tx: Tracer, variable: Variable, leaves: list[TensorVariable]) -> Any:
    """Appends the tensors in tuples, lists and dicts; returns what is around them, None where that is no constant."""
    variable = tx.realize(variable)
    if isinstance(variable, TensorVariable):
        leaves.append(variable)
        return Leaf
    if isinstance(variable, Constant):
        return _Fixed(variable)
    if isinstance(variable, TupleVariable | ListVariable):
        parts = [flatten(tx, item, leaves) for item in variable.items]
        return None if any(p is None for p in parts) else (variable.python_type(), tuple(parts))
    if isinstance(variable, DictVariable) and variable.cls is dict:
        pairs = [flatten(tx, item, leaves) for _, item in variable.entries.values()]
        names = tuple([(key, name) for key, (name, _) in variable.entries.items()])
        return None if any(p is None for p in pairs) else (dict, tuple(pairs), _Names(names))
    return None


@dataclass(frozen=True, eq=False)
class _Fixed:
    """A constant among the tensors."""

    constant: Constant

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Fixed):
            return False
        mine, its = self.constant.value, other.constant.value
        return type(mine) is type(its) and repr(mine) == repr(its)


@dataclass(frozen=True, eq=False)
class _Names:
    """The keys of a dict, in order."""

    names: tuple[tuple[Any, Variable], ...]

    def __eq__(self, other: object) -> bool:
        mine = [key for key, _ in self.names]
        return isinstance(other, _Names) and mine == [key for key, _ in other.names]


def build(structure: Any, leaves: Iterator[Variable]) -> Variable:
    """The inverse of `flatten`."""
    if structure is Leaf:
        return next(leaves)
    if isinstance(structure, _Fixed):
        return structure.constant
    items = [build(part, leaves) for part in structure[1]]
    if structure[0] is dict:
        pairs = zip(structure[2].names, items, strict=True)
        return DictVariable({key: (name, item) for (key, name), item in pairs})
    return ListVariable(items) if structure[0] is list else TupleVariable(items, structure[0])


def fill(
    tx: Tracer,
    function: Callable[..., Any],
    args: list[Any],
    like: Sequence[FakeTensor],
    flows: Sequence[bool],
) -> list[Variable]:
    """The node of a loop or branch; returns its results, which are like these tensors."""
    fakes = tuple(
        [
            tx.builder.fake(
                x.shape, x.dtype, strides=x.strides, device=x.device, requires_grad=flow
            )
            for x, flow in zip(like, flows, strict=True)
        ]
    )
    made = tx.operation(tx.builder.create, function, args, {}, fakes)
    return [tx.from_raw(fake) for fake in made]


def check_alike(a: FakeTensor, b: FakeTensor) -> None:
    """Break unless two results that stand for each other have the same form."""
    first, second = ((x.dtype, x.device, tuple(x.shape), tuple(x.strides)) for x in (a, b))
    if first != second:
        raise break_trace(
            "branches",
            f"{a.dtype} {list(a.shape)} of strides {list(a.strides)} beside {b.dtype} {list(b.shape)} of strides {list(b.strides)}",
        )
