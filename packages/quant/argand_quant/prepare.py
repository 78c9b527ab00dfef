"""`prepare_pt2e`: a program with observers on the values that a quantizer chose."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import argand_autograd as autograd
from argand_c10 import Module, Operator, Tensor
from argand_export import ExportedProgram, ExportGraphSignature, InputKind, OutputKind, OutputSpec
from argand_export.program import ProgramModule
from argand_fx import GraphModule, Node
from argand_fx.effects import draws_random
from argand_quant.fold_batch_norm import fold_batch_norm
from argand_quant.observers import FixedQParamsObserver, ObserverBase
from argand_quant.patterns import CONSTANT, name_of
from argand_quant.quantizer import Quantizer
from argand_quant.specs import (
    ANNOTATION,
    DerivedQuantizationSpec,
    EdgeOrNode,
    FixedQParamsQuantizationSpec,
    QuantizationSpec,
    QuantizationSpecBase,
    SharedQuantizationSpec,
    annotation_of,
)

__all__ = ["DerivedObserver", "PreparedProgram", "prepare_pt2e"]


class PreparedProgram(ProgramModule):
    """A program that observes. Run it on calibration data, without gradients, then give it to `convert_pt2e`.

    Attributes:
        program: the program; its graph calls the observers, which are children of this module.
        example: the arguments of the first call, on which `convert_pt2e` compares layers.
    """

    program: ExportedProgram
    example: tuple[tuple[Any, ...], dict[str, Any]] | None

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__(program)
        self.__dict__["program"] = program
        self.__dict__["example"] = None
        for name, child in program.graph_module.named_children():
            self.add_module(name, child)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self.example is None:
            self.__dict__["example"] = (args, kwargs)
        with autograd.no_grad():
            return super().forward(*args, **kwargs)


class DerivedObserver(ObserverBase):
    """Takes scale and zero point from other observers."""

    def __init__(self, spec: DerivedQuantizationSpec, sources: list[ObserverBase]) -> None:
        keywords = {"qscheme": spec.qscheme, "ch_axis": spec.ch_axis}
        super().__init__(
            spec.dtype,
            quant_min=spec.quant_min,
            quant_max=spec.quant_max,
            is_dynamic=spec.is_dynamic,
            **{k: v for k, v in keywords.items() if v is not None},  # type: ignore[arg-type]
        )
        self.__dict__["derive"] = spec.derive_qparams_fn
        self.__dict__["sources"] = sources

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        scale, zero_point = self.__dict__["derive"](self.__dict__["sources"])
        return scale, zero_point


def prepare_pt2e(model: ExportedProgram | Module, quantizer: Quantizer) -> PreparedProgram:
    """Put observers on the values of a program that a quantizer chooses.

    Batch normalization in evaluation mode that follows a convolution or a linear layer is folded into it first.

    Args:
        model: what `export` gave, exported in evaluation mode, or its `module()`. It stays as it is.
        quantizer: annotates the graph.

    Returns:
        A module that is called as the program is, computes what it computes, and observes.

    Warns:
        UserWarning: the quantizer chose nothing; the program draws random numbers, as dropout does in training.

    Raises:
        TypeError, ValueError: the program was exported for training; the annotations do not fit the graph; a spec refers to one that is not there.
    """
    program = _copy(_program_of(model))
    if not isinstance(quantizer, Quantizer):
        raise TypeError(
            f"prepare_pt2e: got a quantizer of type {type(quantizer).__name__}, expected a Quantizer, as X86InductorQuantizer()"
        )
    if any(name_of(n) == "native_batch_norm_functional" for n in program.graph.nodes):
        raise ValueError(
            "prepare_pt2e: got batch normalization in training mode, expected a program for inference; export model.eval()"
        )
    random = sorted({name_of(n) for n in program.graph.nodes if _draws_random(n)})
    if random:
        warnings.warn(
            f"prepare_pt2e: got a program that draws random numbers ({', '.join(random)}), as modules in training mode do, expected one for "
            "inference; export model.eval()",
            stacklevel=2,
        )
    fold_batch_norm(program)
    program.graph_module = quantizer.transform_for_annotation(program.graph_module)
    quantizer.annotate(program.graph_module)
    quantizer.validate(program.graph_module)
    inserter = _Inserter(program)
    inserter.run()
    if not inserter.observers:
        warnings.warn(
            f"prepare_pt2e: {type(quantizer).__name__} chose nothing, and all stays in float; "
            "expected layers of float32 with constant weights, and settings that cover them",
            stacklevel=2,
        )
    program.graph.lint()
    return PreparedProgram(program)


def _draws_random(node: Node) -> bool:
    return isinstance(node.target, Operator) and draws_random(node.target)


def _program_of(model: Any) -> ExportedProgram:
    found = model.__dict__.get("_program", model) if isinstance(model, ProgramModule) else model
    if not isinstance(found, ExportedProgram):
        raise TypeError(
            f"prepare_pt2e: got {type(model).__name__}, expected an ExportedProgram or its module(); call argand.export.export(model, args) first"
        )
    return found


def _copy(program: ExportedProgram) -> ExportedProgram:
    """A program with a graph of its own, on the same tensors but for buffers that it changes; placeholders of what never changes are marked."""
    graph = copy.deepcopy(program.graph)
    module = GraphModule(program.graph_module, graph, "Prepared")
    signature = program.graph_signature
    changed = {s.target for s in signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION}
    names = {
        s.arg: s.target
        for s in signature.input_specs
        if s.kind in (InputKind.PARAMETER, InputKind.BUFFER) and s.target not in changed
    }
    for node in graph.nodes:
        node.meta.pop(ANNOTATION, None)
        if node.op == "placeholder" and node.name in names:
            node.meta[CONSTANT] = names[node.name]
    state = {n: t.clone() if n in changed else t for n, t in program.state_dict.items()}
    return ExportedProgram(
        module, signature, state, dict(program.constants), program.call_spec,
        program.range_constraints, program.symbols, program.example_inputs,
    )  # fmt: skip


class _Inserter:
    """From annotations to observers: edges and results that share one spec form a group, and each group has one observer."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self.module = program.graph_module
        self.specs: dict[EdgeOrNode, QuantizationSpecBase] = {}
        self.parents: dict[EdgeOrNode, EdgeOrNode] = {}
        self.observers: dict[EdgeOrNode, Module] = {}

    def run(self) -> None:
        nodes = list(self.module.graph.nodes)
        separate = self._collect(nodes)
        for key, spec in self.specs.items():
            if isinstance(spec, SharedQuantizationSpec):
                self._share(key, spec.edge_or_node)
        for node in nodes:
            self._share_equal(node, separate)
        inputs_end = [n for n in nodes if n.op == "placeholder"][-1:]
        for node in nodes:
            if node.op == "placeholder":
                inputs_end = [self._observe(node, inputs_end[0])]
            else:
                self._observe(node, node)
        self._rename_outputs()

    def _collect(self, nodes: list[Node]) -> set[Node]:
        """Note all specs; returns the nodes that do not share implicitly."""
        separate = set()
        for node in nodes:
            annotation = annotation_of(node)
            if annotation is None:
                continue
            if not annotation.allow_implicit_sharing:
                separate.add(node)
            for source, spec in annotation.input_qspec_map.items():
                if source not in node.all_input_nodes:
                    raise ValueError(
                        f"prepare_pt2e: got a spec for {source!r} on {node.name}, which does not use it; expected one of {node.all_input_nodes}"
                    )
                if spec is not None:
                    self.specs[source, node] = spec
            if annotation.output_qspec is not None:
                self.specs[node] = annotation.output_qspec
        return separate

    def _root(self, key: EdgeOrNode) -> EdgeOrNode:
        while key in self.parents:
            key = self.parents[key]
        return key

    def _share(self, key: EdgeOrNode, other: EdgeOrNode) -> None:
        if other not in self.specs:
            raise ValueError(
                f"prepare_pt2e: got a SharedQuantizationSpec for {key} that refers to {other}, expected an edge or node with a spec"
            )
        target = self._root(other)
        if target == key:
            raise ValueError(
                f"prepare_pt2e: got SharedQuantizationSpecs that refer to one another at {key}, expected one of them to say what is shared"
            )
        self.parents[key] = target

    def _share_equal(self, node: Node, separate: set[Node]) -> None:
        """Equal specs of one value: the node's own, and those of its users."""
        keys: list[EdgeOrNode] = [node] if node in self.specs and node not in separate else []
        keys += [(node, u) for u in node.users if (node, u) in self.specs and u not in separate]
        for i, key in enumerate(keys):
            for other in keys[:i]:
                root, target = self._root(key), self._root(other)
                if root != target and self.specs[root] == self.specs[target]:
                    self.parents[root] = target

    def _observe(self, node: Node, after: Node) -> Node:
        """Insert the observers of a node's value after `after`; the last one, or `after`."""
        value = node
        made: dict[EdgeOrNode, Node] = {}
        if node in self.specs:
            value = after = made[self._root(node)] = self._call(node, self._root(node), after)
            node.replace_all_uses_with(value, lambda user: user is not value)
        for user in list(value.users):
            if (node, user) not in self.specs:
                continue
            root = self._root((node, user))
            if root not in made:
                after = made[root] = self._call(value, root, after)
            if made[root] is not value:
                user.replace_input_with(value, made[root])
        return after

    def _call(self, value: Node, root: EdgeOrNode, after: Node) -> Node:
        observer = self._observer(root)
        name = next(n for n, m in self.module.named_children() if m is observer)
        with self.module.graph.inserting_after(after):
            node = self.module.graph.call_module(name, (value,))
        node.meta["val"] = value.meta["val"]
        return node

    def _observer(self, root: EdgeOrNode) -> Module:
        if root not in self.observers:
            made = self._make(self.specs[root])
            self.module.add_submodule(f"activation_post_process_{len(self.observers)}", made)
            self.observers[root] = made
        return self.observers[root]

    def _make(self, spec: QuantizationSpecBase) -> Module:
        if isinstance(spec, QuantizationSpec):
            given = {n: getattr(spec, n) for n in ("dtype", "quant_min", "quant_max", "qscheme")}
            given |= {"ch_axis": spec.ch_axis, "is_dynamic": spec.is_dynamic or None}
            made: Module = spec.observer_or_fake_quant_ctr(
                **{k: v for k, v in given.items() if v is not None}
            )
            return made
        if isinstance(spec, FixedQParamsQuantizationSpec):
            rest = {} if spec.qscheme is None else {"qscheme": spec.qscheme}
            return FixedQParamsObserver(
                spec.scale, spec.zero_point, spec.dtype, quant_min=spec.quant_min,
                quant_max=spec.quant_max, is_dynamic=spec.is_dynamic, **rest,
            )  # fmt: skip
        if isinstance(spec, DerivedQuantizationSpec):
            return DerivedObserver(spec, [self._source(key) for key in spec.derived_from])
        raise TypeError(f"prepare_pt2e: got a spec of type {type(spec).__name__}")

    def _source(self, key: EdgeOrNode) -> Any:
        if key not in self.specs:
            raise ValueError(
                f"prepare_pt2e: got a DerivedQuantizationSpec that refers to {key}, expected an edge or node with a spec"
            )
        return self._observer(self._root(key))

    def _rename_outputs(self) -> None:
        """Results that are now observed have other names."""
        signature = self.program.graph_signature
        results = iter(self.module.graph.output_node().args[0])
        outputs = tuple(
            s
            if s.arg is None
            else OutputSpec(s.kind, str(getattr(r := next(results), "name", r)), s.target)
            for s in signature.output_specs
        )
        self.program.graph_signature = ExportGraphSignature(signature.input_specs, outputs)
