"""Batch normalization of a layer's result, folded into its weights."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
import argand_autograd as autograd
from argand_c10 import Parameter, Tensor
from argand_export import ExportedProgram, ExportGraphSignature, InputKind, InputSpec
from argand_fx import Node
from argand_fx.shapes import FakeTensor
from argand_quant.patterns import CONSTANT, name_of, result_of, sole_user

__all__ = ["fold_batch_norm"]


def fold_batch_norm(program: ExportedProgram) -> None:
    """Compute convolutions and linear layers with batch normalization in evaluation mode after them as such layers with other weights.

    With g = weight / sqrt(running_var + eps), the layer's weights become w * g for each output channel and its bias
    (bias - running_mean) * g + the normalization's bias. The program's graph, signature and `state_dict` change; the tensors that
    `state_dict` held do not.
    """
    for node in list(program.graph.nodes):
        if name_of(node) == "native_batch_norm" and (result := result_of(node)) is not None:
            layer = node.args[0]
            if _foldable(node, layer):
                _fold(program, layer, node, result)
    _drop_unused_inputs(program)


def _foldable(norm: Node, layer: Any) -> bool:
    """Whether the statistics are constants, and nothing else needs the layer's result or weights."""
    if not isinstance(layer, Node) or sole_user(layer) is not norm:
        return False
    channels_second = name_of(layer) == "linear" and layer.meta["val"].ndim == 2
    if name_of(layer) != "convolution" and not channels_second:
        return False
    constants = [*layer.args[1:3], *norm.args[1:5]]
    known = all(x is None or (isinstance(x, Node) and CONSTANT in x.meta) for x in constants)
    own = all(x is None or sole_user(x) is layer for x in layer.args[1:3])
    return norm.args[5] is False and norm.args[3] is not None and known and own


def _fold(program: ExportedProgram, layer: Node, norm: Node, result: Node) -> None:
    state = program.state_dict

    def tensor(x: Any, default: Tensor) -> Tensor:
        return state[x.meta[CONSTANT]] if isinstance(x, Node) else default

    given: list[Any] = [*layer.args[1:], *[None] * (3 - len(layer.args))]
    weight_node, bias_node, *rest = given
    assert isinstance(weight_node, Node)
    with autograd.no_grad():
        mean, variance = tensor(norm.args[3], aten.zeros(1)), tensor(norm.args[4], aten.ones(1))
        gain = tensor(norm.args[1], aten.ones_like(mean)) / aten.sqrt(variance + norm.args[7])
        weight = tensor(weight_node, mean)
        bias = tensor(bias_node, aten.zeros_like(mean))
        shift = tensor(norm.args[2], aten.zeros_like(mean))
        weight = weight * gain.reshape([-1] + [1] * (weight.ndim - 1))
        bias = (bias - mean) * gain + shift
    weight_name = weight_node.meta[CONSTANT]
    if not isinstance(bias_node, Node):
        name = weight_name.rpartition(".")[0] + ".bias"
        bias_node = _add_parameter(program, weight_node, name.lstrip("."), bias)
        layer.args = (*layer.args[:2], bias_node, *rest)
    state[weight_name] = Parameter(weight)
    state[bias_node.meta[CONSTANT]] = Parameter(bias)
    result.replace_all_uses_with(layer)
    for user in list(norm.users):
        program.graph.erase_node(user)
    program.graph.erase_node(norm)


def _add_parameter(program: ExportedProgram, after: Node, name: str, value: Tensor) -> Node:
    """A new parameter, whose placeholder follows that of another one."""
    while name in program.state_dict:
        name += "_"
    with program.graph.inserting_after(after):
        node = program.graph.placeholder("p_" + name.replace(".", "_"))
    node.meta["val"] = FakeTensor(value.shape, value.stride(), 0, value.dtype, value.device)
    node.meta[CONSTANT] = name
    program.state_dict[name] = value
    signature = program.graph_signature
    specs: list[InputSpec] = []
    for spec in signature.input_specs:
        specs.append(spec)
        if spec.arg == after.name:
            specs.append(InputSpec(InputKind.PARAMETER, node.name, name))
    program.graph_signature = ExportGraphSignature(tuple(specs), signature.output_specs)
    return node


def _drop_unused_inputs(program: ExportedProgram) -> None:
    """Remove parameters and buffers that nothing reads any more."""
    unused = {
        n.name: n
        for n in program.graph.nodes
        if n.op == "placeholder" and CONSTANT in n.meta and not n.users
    }
    signature = program.graph_signature
    kept = tuple(s for s in signature.input_specs if s.arg not in unused)
    program.graph_signature = ExportGraphSignature(kept, signature.output_specs)
    for node in unused.values():
        program.state_dict.pop(node.meta[CONSTANT], None)
        program.graph.erase_node(node)
