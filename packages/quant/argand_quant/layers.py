"""The quantized layers of a prepared graph: nodes between observers."""

from __future__ import annotations

from dataclasses import dataclass

from argand_fx import GraphModule, Node
from argand_quant.patterns import CONSTANT, MOVEMENT, name_of, sole_user
from argand_quant.specs import annotation_of

__all__ = ["LAYER", "Layer", "layers_of"]

LAYER = "quantized_layer"  # of Node.meta: the name of the layer that the node belongs to


@dataclass(frozen=True)
class Layer:
    """Nodes that are computed together.

    Attributes:
        name: of the module that holds its weight; else of its first node. Unique in the graph.
        operator: the operators, as "convolution + relu".
        nodes: in order; the last gives the result.
    """

    name: str
    operator: str
    nodes: tuple[Node, ...]


def layers_of(module: GraphModule) -> list[Layer]:
    """The layers of a prepared graph in order; movement alone is none."""
    found: list[Layer] = []
    taken: set[Node] = set()
    names: set[str] = set()
    for node in module.graph.nodes:
        annotation = annotation_of(node)
        if node in taken or annotation is None or not annotation.input_qspec_map:
            continue
        nodes = [node]
        while (
            (user := sole_user(nodes[-1])) is not None
            and user.op == "call_function"
            and annotation_of(user) is not None
        ):
            nodes.append(user)
        taken.update(nodes)
        operators = [name_of(n) for n in nodes if name_of(n)]
        if not all(n in MOVEMENT for n in operators):
            name = _name(node)
            while name in names:
                name += "_"
            names.add(name)
            found.append(Layer(name, " + ".join(operators), tuple(nodes)))
    return found


def _name(node: Node) -> str:
    """The path of the module that holds a layer's weight."""
    for argument in node.all_input_nodes:
        while argument.op == "call_module":
            argument = argument.all_input_nodes[0]
        if (parameter := argument.meta.get(CONSTANT)) and "." in parameter:
            return str(parameter.rpartition(".")[0])
    return node.name
