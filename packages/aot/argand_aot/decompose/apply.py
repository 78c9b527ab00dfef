"""Rewriting a functional graph by decompositions."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from argand_aot.custom_function import bound_arguments
from argand_aot.decompose.table import Decomposition
from argand_aot.emitter import Emitter
from argand_aot.functionalize import Functionalizer
from argand_aot.values import Value, fresh_value, geometry_of
from argand_c10 import Operator
from argand_fx import Graph, GraphModule, Node
from argand_fx.schema import overload
from argand_fx.shapes import FakeTensor, GraphBuilder

__all__ = ["decompose"]


def decompose(module: GraphModule, table: Mapping[str, Decomposition]) -> GraphModule:
    """The functional graph with the operators of `table` replaced by what they are made of.

    Args:
        module: a graph as compilers get it; inputs and outputs, with their layout, stay the same.
        table: decompositions by overload name. What they call is decomposed in turn.
    """
    if not any(
        isinstance(n.target, Operator) and n.target.name in table for n in module.graph.nodes
    ):
        return module
    return _Rewrite(module, table).run()


class _Rewrite:
    def __init__(self, module: GraphModule, table: Mapping[str, Decomposition]) -> None:
        self.module = module
        self.graph = Graph()
        self.builder = GraphBuilder(self.graph, _shape_env(module))
        self.f = Functionalizer(Emitter(self.builder), decompositions=table)
        self.env: dict[Node, Any] = {}
        self.root: dict[str, Any] = {}

    def run(self) -> GraphModule:
        for node in self.module.graph.nodes:
            self.builder.location = node.meta.get("location")
            self.builder.stack = node.meta.get("stack")
            if node.op == "placeholder":
                self.env[node] = self._input(node)
            elif node.op == "get_attr":
                self.env[node] = self._constant(node)
            elif node.op == "output":
                self._output(node)
            elif node.target is operator.getitem:
                self.env[node] = self._value(node.args[0])[node.args[1]]
            else:
                kwargs = {k: self._value(v) for k, v in node.kwargs.items()}
                bound = bound_arguments(node.target, self._value(node.args), kwargs)
                self.env[node] = self.f.run(node.target, bound, node.meta.get("val"))
        return GraphModule(self.root, self.graph, self.module._class_name)

    def _value(self, x: Any) -> Any:
        if isinstance(x, Node):
            return self.env[x]
        if isinstance(x, tuple):
            return tuple(self._value(v) for v in x)
        if isinstance(x, list):
            return [self._value(v) for v in x]
        return x

    def _input(self, node: Node) -> Any:
        like = node.meta["val"]
        if not isinstance(like, FakeTensor):
            return self.builder.placeholder(node.name, like)
        return fresh_value(self.builder.placeholder(node.name, _copy(like)))

    def _constant(self, node: Node) -> Value:
        fake = _copy(node.meta["val"])
        fake.node = self.graph.create_node("get_attr", node.target)
        fake.builder = self.builder
        fake.node.meta["val"] = fake
        found: Any = self.module
        for part in node.target.split("."):
            found = getattr(found, part)
        self.root[node.target] = found
        return fresh_value(fake)

    def _output(self, node: Node) -> None:
        """The results, laid out as before; equal ones are tensors of their own."""
        emit = self.f.emitter
        taken: set[Any] = set()
        values = []
        for item in node.args[0]:
            value = self._value(item)
            if isinstance(value, Value):
                content = emit.laid_out(self.f.read(value), geometry_of(item.meta["val"]))
                made = content.node
                if content.storage in taken or made is None or made.op != "call_function":
                    content = emit.new(overload("clone"), [content, None])
                taken.add(content.storage)
                value = content
            values.append(value)
        self.builder.output(tuple(values))
        self.graph.eliminate_dead_code()


def _copy(like: FakeTensor) -> FakeTensor:
    return FakeTensor(like.shape, like.stride(), like.storage_offset(), like.dtype, like.device)


def _shape_env(module: GraphModule) -> Any:
    for node in module.graph.nodes:
        builder = getattr(node.meta.get("val"), "builder", None)
        if builder is not None and builder.shape_env is not None:
            return builder.shape_env
    return None
