"""`convert_pt2e`: from observed values to integers."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import argand_autograd as autograd
from argand_c10 import Tensor
from argand_export import (
    ExportedProgram,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
)
from argand_fx import Graph, GraphModule, Node
from argand_fx.shapes import FakeTensor, GraphBuilder
from argand_quant import operators as ops
from argand_quant.layers import LAYER, layers_of
from argand_quant.patterns import CONSTANT
from argand_quant.prepare import PreparedProgram
from argand_quant.report import Limits, QuantizationReport, make_report, warn_of
from argand_quant.simplify import shape_env, simplify

__all__ = ["ConvertedProgram", "convert_pt2e"]


class ConvertedProgram(ExportedProgram):
    """An exported program that computes with integers; it runs, saves, loads, compiles and packages as any other, but is not trained.

    Quantized weights are constants of the graph (`graph_module.state_dict()`); what was left in float are buffers (`state_dict`).

    Attributes:
        report: noise and times of each layer; None where they were not measured. Files do not keep it.
    """

    report: QuantizationReport | None = None


def convert_pt2e(
    model: PreparedProgram,
    *,
    report: bool = True,
    limits: Limits = Limits(),  # noqa: B008  (frozen)
) -> ConvertedProgram:
    """Turn a calibrated program into one with integers.

    Observed values become quantize and dequantize operators with the observers' scales and zero points; observed weights become integer constants.

    Args:
        model: what `prepare_pt2e` gave, after calibration. It stays as it is.
        report: run each layer on the first calibration call, in float and on integers; `ConvertedProgram.report` says how they compare.
        limits: what the report warns of.

    Returns:
        The program.

    Raises:
        RuntimeError: an observer has seen nothing.
        ValueError: an observer has seen infinite values or NaN.

    Warns:
        UserWarning: layers are slower on integers than in float, or noisier than the limit.
    """
    if not isinstance(model, PreparedProgram):
        raise TypeError(
            f"convert_pt2e: got {type(model).__name__}, expected what prepare_pt2e returned"
        )
    with autograd.no_grad():
        converter = _Converter(model.program)
        converted = converter.program()
        if report and model.example is not None:
            converted.report = make_report(model, converted, converter.origins)
        simplify(converted.graph_module)
    if converted.report is not None:
        warn_of(converted.report, limits)
    return converted


class _Converter:
    """Builds the converted graph node by node.

    Attributes:
        origins: nodes of the new graph to those of the prepared one whose value they have.
    """

    def __init__(self, prepared: ExportedProgram) -> None:
        self.prepared = prepared
        self.module = prepared.graph_module
        self.graph = Graph()
        self.builder = GraphBuilder(self.graph, shape_env(self.module))
        self.env: dict[Node, Any] = {}
        self.integers: dict[tuple[Node, str], FakeTensor] = {}
        self.origins: dict[Node, Node] = {}
        self.layer_of = {n: layer.name for layer in layers_of(self.module) for n in layer.nodes}

    def program(self) -> ConvertedProgram:
        old = self.prepared
        folded = {
            n.name: n.meta[CONSTANT]
            for n in self.module.graph.nodes
            if CONSTANT in n.meta and n.users and all(u.op == "call_module" for u in n.users)
        }
        for node in self.module.graph.nodes:
            if node.name not in folded:
                self._convert(node)
        signature = ExportGraphSignature(
            tuple(_frozen(s) for s in old.graph_signature.input_specs if s.arg not in folded),
            tuple(self._outputs()),
        )
        gone = set(folded.values())
        changed = {s.target for s in signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION}
        return ConvertedProgram(
            GraphModule(self.builder.constants, self.graph, "Converted"),
            signature,
            {
                n: t.clone() if n in changed else t.detach()
                for n, t in old.state_dict.items()
                if n not in gone
            },
            dict(old.constants),
            old.call_spec,
            old.range_constraints,
            old.symbols,
            old.example_inputs,
        )

    def _convert(self, node: Node) -> None:
        self.builder.location = node.meta.get("location")
        self.builder.stack = node.meta.get("stack")
        if node.op == "output":
            self.builder.output(self._value(node.args[0]))
            return
        made = self.env[node] = self._value_of(node)
        if isinstance(made, FakeTensor) and made.node is not None:
            self.origins.setdefault(made.node, node)
        if node in self.layer_of:
            _mark(made, self.layer_of[node])

    def _value_of(self, node: Node) -> Any:
        if node.op == "placeholder":
            return self._input(node)
        if node.op == "get_attr":
            return self.builder.constant(self._constant(node))
        if node.op == "call_module":
            return self._observed(node)
        args, kwargs = self._value(node.args), self._value(node.kwargs)
        if node.target is operator.getitem:
            return args[0][args[1]]
        return self.builder.call(node.target, args, kwargs)

    def _value(self, x: Any) -> Any:
        """Arguments with the new values for the old nodes."""
        if isinstance(x, Node):
            return self.env[x]
        if isinstance(x, dict):
            return {k: self._value(v) for k, v in x.items()}
        if isinstance(x, (list, tuple)):
            items = [self._value(v) for v in x]
            return tuple(items) if isinstance(x, tuple) else items
        return x

    def _input(self, node: Node) -> FakeTensor:
        like = node.meta["val"]
        fake = FakeTensor(like.shape, like.stride(), like.storage_offset(), like.dtype, like.device)
        made: FakeTensor = self.builder.placeholder(node.name, fake)
        assert made.node is not None
        if CONSTANT in node.meta:
            made.node.meta[CONSTANT] = node.meta[CONSTANT]
        return made

    def _constant(self, node: Node) -> Tensor:
        """The tensor of a node that `is_constant`."""
        if node.op == "get_attr":
            found: Tensor = self.module.get_buffer(str(node.target))
            return found
        return self.prepared.state_dict[node.meta[CONSTANT]].detach()

    def _outputs(self) -> list[OutputSpec]:
        results = iter(self.graph.output_node().args[0])
        return [
            s
            if s.arg is None
            else OutputSpec(s.kind, str(getattr(r := next(results), "name", r)), s.target)
            for s in self.prepared.graph_signature.output_specs
        ]

    # ---- observed values

    def _observed(self, node: Node) -> FakeTensor:
        """The value of an observer's node: integers, and what they stand for."""
        observer: Any = self.module.get_submodule(str(node.target))
        source: Any = node.args[0]
        if (source, node.target) not in self.integers:
            self.integers[source, node.target] = self._quantized(observer, source)
        return self.integers[source, node.target]

    def _quantized(self, observer: Any, source: Node) -> FakeTensor:
        build: Callable[..., Any] = self.builder.call
        rest: tuple[Any, ...]
        limits = (observer.quant_min, observer.quant_max, observer.dtype)
        constant = source.op == "get_attr" or CONSTANT in source.meta
        if observer.is_dynamic:
            choose = (
                ops.choose_qparams_symmetric_tensor
                if observer.qscheme.symmetric
                else ops.choose_qparams_tensor
            )
            x = self.env[source]
            scale, zero = build(choose, (x, *limits[:2], observer.eps, observer.dtype))
            integers = build(ops.quantize_per_tensor_tensor, (x, scale, zero, *limits))
            dynamic: FakeTensor = build(
                ops.dequantize_per_tensor_tensor, (integers, scale, zero, *limits)
            )
            return dynamic
        if constant:
            observer(self._constant(source))  # also where nothing was run
        try:
            scales, zeros = observer.calculate_qparams()
        except (RuntimeError, ValueError) as error:
            value = source.meta.get(CONSTANT, source.name)
            raise type(error)(f"convert_pt2e: {value}: {error}") from None
        if observer.qscheme.per_channel:
            rest = (scales, zeros, observer.ch_axis, *limits)
            quantize, dequantize = ops.quantize_per_channel, ops.dequantize_per_channel
        else:
            rest = (float(scales.item()), int(zeros.item()), *limits)
            quantize, dequantize = ops.quantize_per_tensor, ops.dequantize_per_tensor
        if constant:
            integers = self._named(
                source, observer.dtype.name, quantize(self._constant(source), *rest)
            )
            if observer.qscheme.per_channel:
                shifted = bool((zeros != 0).any())
                rest = (
                    self._named(source, "scales", scales),
                    self._named(source, "zero_points", zeros) if shifted else None,
                    *rest[2:],
                )
        else:
            integers = build(quantize, (self.env[source], *rest))
        made: FakeTensor = build(dequantize, (integers, *rest))
        return made

    def _named(self, source: Node, what: str, value: Tensor) -> FakeTensor:
        """A constant of the graph that stands for a part of another one."""
        name = f"{source.meta.get(CONSTANT, source.name)}_{what}".replace(".", "_")
        while name in self.builder.constants:
            name += "_"
        self.builder.constants[name] = value
        fake = self.builder.from_tensor(value)
        fake.node = self.graph.create_node("get_attr", name)
        fake.node.meta["val"] = fake
        return fake


def _frozen(spec: InputSpec) -> InputSpec:
    """A parameter as a buffer: what is left of the parameters is no longer trained."""
    kind = InputKind.BUFFER if spec.kind is InputKind.PARAMETER else spec.kind
    return dataclasses.replace(spec, kind=kind)


def _mark(made: Any, layer: str) -> None:
    """Note the layer on the nodes of an operator's results."""
    for value in made if isinstance(made, tuple) else (made,):
        node = value.node
        node.meta[LAYER] = layer
        if node.target is operator.getitem:
            node.args[0].meta[LAYER] = layer
