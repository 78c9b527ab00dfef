"""Rebuilding a graph node by node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argand_fx.graph import Graph
from argand_fx.graph_module import GraphModule
from argand_fx.interpreter import Interpreter
from argand_fx.node import Node, map_aggregate
from argand_fx.proxy import Proxy
from argand_fx.tracer import Tracer

__all__ = ["Transformer"]


class _Recorder(Tracer):
    record_stack_traces = False

    def is_leaf_module(self, m: object, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """An interpreter whose values are proxies: what its methods do becomes a new graph.

    Override the methods named after the opcodes (`call_function`...); `transform` gives the new module. Nodes keep the
    places in the user's code of the nodes they come from.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _Recorder()
        self.tracer.graph = self.new_graph
        self.tracer.root = module
        self.tracer.submodule_paths = {m: name for name, m in module.named_modules()}
        self._current: Node | None = None

    def placeholder(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """An input of the new graph."""
        assert self._current is not None
        return self._made(
            self.new_graph.create_node(
                "placeholder", target, args, name=self._current.name, type_expr=self._current.type
            )
        )

    def get_attr(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """The same attribute in the new graph."""
        return self._made(self.new_graph.create_node("get_attr", target))

    def call_module(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the same module in the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(
        self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call of the same function in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the same method in the new graph."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def run_node(self, n: Node) -> Any:
        self._current = n
        result = super().run_node(n)
        if isinstance(result, Proxy):
            for key in ("location", "stack", "binds", "val", "grad_enabled"):
                # A symbol stays bound by the input that bound it; other results may have changed.
                if key in n.meta and (key != "val" or n.op == "placeholder"):
                    result.node.meta.setdefault(key, n.meta[key])
        return result

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        # Symbolic numbers stay as they are.
        return map_aggregate(args, lambda item: self.env[item] if isinstance(item, Node) else item)

    def transform(self) -> GraphModule:
        """The module of the new graph; attributes are shared with the old one."""
        result = self._run_symbolically()
        if result is not None:
            value = map_aggregate(result, lambda v: v.node if isinstance(v, Proxy) else v)
            self.new_graph.output(value)
        return GraphModule(self.module, self.new_graph, self.module._class_name)

    def _run_symbolically(self) -> Any:
        self.env = {}
        result = None
        for node in self.graph.nodes:
            self.env[node] = result = self.run_node(node)
            if node.op == "output":
                return result
        return None

    def _made(self, node: Node) -> Proxy:
        return self.tracer.proxy(node)
