"""One layer of a program as modules of its own: in float, and on integers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argand_c10 import Tensor
from argand_fx import Graph, GraphModule, Node
from argand_quant import operators as ops
from argand_quant.patterns import CONSTANT, QUANTIZE, name_of

__all__ = ["float_module", "quantized_module", "quantized_result"]

_NAMESPACE = "quantized_decomposed::"


def float_module(
    nodes: list[Node], floats: Mapping[Node, Tensor]
) -> tuple[GraphModule, list[Tensor]]:
    """A layer's nodes on float inputs, and these.

    Args:
        nodes: of the layer, in a converted graph, in order.
        floats: the values of nodes of that graph in float.
    """
    graph, inputs = Graph(), []
    made: dict[Node, Node] = {}
    for source in dict.fromkeys(s for n in nodes for s in n.all_input_nodes if s not in nodes):
        made[source] = graph.placeholder(source.name)
        inputs.append(floats[source])
    for node in nodes:
        made[node] = graph.node_copy(node, made.__getitem__)
    graph.output((made[nodes[-1]],))
    return GraphModule({}, graph, "FloatLayer"), inputs


def quantized_module(
    module: GraphModule,
    nodes: list[Node],
    floats: Mapping[Node, Tensor],
    state: Mapping[str, Tensor],
) -> tuple[GraphModule, list[Tensor]]:
    """A layer with its constants, on inputs as the converted program has them (integers, where their scale is fixed), and these.

    Its result is quantized if the program quantizes it.

    Args:
        module: the converted graph.
        nodes, floats: as in `float_module`.
        state: the program's parameters and buffers.
    """
    return _Extraction(module, nodes, floats, state).run()


def quantized_result(node: Node, result: Tensor) -> Tensor:
    """What the result of a `quantized_module` that ends with `node` stands for."""
    quantize = _quantize_of(node)
    if quantize is None:
        return result
    found: Tensor = ops.dequantize_per_tensor(result, *quantize.args[1:])
    return found


def _quantize_of(node: Node) -> Node | None:
    return next((u for u in node.users if name_of(u) == QUANTIZE), None)


class _Extraction:
    def __init__(
        self,
        module: GraphModule,
        nodes: list[Node],
        floats: Mapping[Node, Tensor],
        state: Mapping[str, Tensor],
    ) -> None:
        self.module, self.nodes, self.floats, self.state = module, nodes, floats, state
        self.graph = Graph()
        self.made: dict[Node, Node] = {}
        self.constants: dict[str, Tensor] = {}
        self.inputs: list[Tensor] = []

    def run(self) -> tuple[GraphModule, list[Tensor]]:
        last = self.nodes[-1]
        result = self._copy(last)
        if (quantize := _quantize_of(last)) is not None:
            result = self.graph.node_copy(quantize, lambda _: self.made[last])
        self.graph.output((result,))
        return GraphModule(self.constants, self.graph, "QuantizedLayer"), self.inputs

    def _copy(self, node: Node) -> Node:
        if node not in self.made:
            self.made[node] = self._new(node)
        return self.made[node]

    def _new(self, node: Node) -> Node:
        if node.op == "get_attr":
            return self._constant(node, str(node.target), self.module.get_buffer(str(node.target)))
        if CONSTANT in node.meta:
            return self._constant(node, node.name, self.state[node.meta[CONSTANT]].detach())
        if name_of(node) == QUANTIZE:
            source: Any = node.args[0]
            return self._input(node, node.target(self.floats[source], *node.args[1:]))
        if node not in self.nodes and not self._is_parameter(node):
            return self._input(node, self.floats[node])
        for source in node.all_input_nodes:
            self._copy(source)
        return self.graph.node_copy(node, self.made.__getitem__)

    def _is_parameter(self, node: Node) -> bool:
        """Whether it finds a scale or applies one."""
        source = node.args[0] if node.args else None
        picked = isinstance(source, Node) and name_of(source).startswith(_NAMESPACE)
        return name_of(node).startswith(_NAMESPACE) or (picked and not name_of(node))

    def _constant(self, node: Node, name: str, value: Tensor) -> Node:
        self.constants[name] = value
        made = self.graph.create_node("get_attr", name)
        made.meta["val"] = node.meta["val"]
        return made

    def _input(self, node: Node, value: Tensor) -> Node:
        with self.graph.inserting_before():
            made = self.graph.placeholder(node.name)
        made.meta["val"] = node.meta["val"]
        self.inputs.insert(0, value)
        return made
