"""The quantizer for CPUs: 8-bit integers where there are kernels for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from argand_c10 import Operator, int8, uint8
from argand_fx import GraphModule, Node
from argand_quant.fake_quantize import FakeQuantize
from argand_quant.observers import (
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
)
from argand_quant.patterns import (
    CLAMPS,
    CONSTANT,
    MOVEMENT,
    POOLING,
    inputs_of,
    is_constant,
    is_float,
    name_of,
    result_of,
    sole_user,
)
from argand_quant.quantizer import Quantizer
from argand_quant.specs import (
    ANNOTATION,
    QuantizationAnnotation,
    QuantizationConfig,
    QuantizationSpec,
    SharedQuantizationSpec,
    annotation_of,
    per_channel_symmetric,
    per_tensor_affine,
)

__all__ = [
    "CPUQuantizer",
    "X86InductorQuantizer",
    "get_default_x86_inductor_quantization_config",
]

_EPS = 2.0**-12
# Kinds of layers by what users call them: functions and modules.
_KINDS = {
    "linear": "linear",
    "Linear": "linear",
    "conv2d": "conv2d",
    "convolution": "conv2d",
    "Conv2d": "conv2d",
    "matmul": "matmul",
    "bmm": "matmul",
    "mm": "matmul",
    "embedding": "embedding",
    "Embedding": "embedding",
    "add": "add",
}
_OPERATORS = {
    "linear": "linear",
    "convolution": "conv2d",
    "bmm": "matmul",
    "mm": "matmul",
    "embedding": "embedding",
}
_DEFAULT = frozenset(("linear", "conv2d", "embedding", "add"))  # what set_global stands for


def get_default_x86_inductor_quantization_config(
    is_qat: bool = False, is_dynamic: bool = False, reduce_range: bool = False
) -> QuantizationConfig:
    """Activations in uint8, one scale each; weights in int8, symmetric, a scale for each output channel.

    Args:
        is_qat: with fake quantization, for training.
        is_dynamic: scales of activations are found when the program runs, without calibration.
        reduce_range: 7 bits for activations, where sums of two products must fit in 16 bits. The kernels here do not need it.
    """
    high = 127 if reduce_range else 255
    ctr: Callable[..., Any]
    if is_qat:
        ctr = FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, eps=_EPS)
        weight_ctr = FakeQuantize.with_args(
            observer=MovingAveragePerChannelMinMaxObserver, eps=_EPS
        )
    else:
        observer = PlaceholderObserver if is_dynamic else HistogramObserver
        ctr = observer.with_args(eps=_EPS)
        weight_ctr = PerChannelMinMaxObserver.with_args(eps=_EPS)
    activation = QuantizationSpec(uint8, ctr, 0, high, per_tensor_affine, is_dynamic=is_dynamic)
    weight = QuantizationSpec(int8, weight_ctr, -128, 127, per_channel_symmetric, ch_axis=0)
    return QuantizationConfig(activation, activation, weight, None, is_qat)


class X86InductorQuantizer(Quantizer):
    """Quantizes linear layers, convolutions (with relu or hardtanh, with add and relu), embeddings (weights only), and, where both sides are quantized anyway,
    adds, pooling and what moves elements; matmul when it is asked for.

    Settings by name come before settings by type, and those before the global ones:

        quantizer = X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())
        quantizer.set_module_name_qconfig("scores", None)  # stays in float
        quantizer.set_function_type_qconfig(argand.matmul, get_default_x86_inductor_quantization_config())
    """

    def __init__(self) -> None:
        self._global: QuantizationConfig | None = None
        self._by_kind: dict[str, QuantizationConfig | None] = {}
        self._by_name: dict[str, QuantizationConfig | None] = {}

    def set_global(self, config: QuantizationConfig | None) -> X86InductorQuantizer:
        """For all layers but matmul."""
        self._global = config
        return self

    def set_function_type_qconfig(
        self, function_type: Callable[..., Any], config: QuantizationConfig | None
    ) -> X86InductorQuantizer:
        """For calls of a function: linear, conv2d, matmul, embedding, add."""
        if isinstance(function_type, Operator):
            return self._set_kind(function_type.name, config)
        return self._set_kind(str(getattr(function_type, "__name__", "?")), config)

    def set_module_type_qconfig(
        self, module_type: Callable[..., Any], config: QuantizationConfig | None
    ) -> X86InductorQuantizer:
        """For modules of a class: Linear, Conv2d, Embedding."""
        return self._set_kind(getattr(module_type, "__name__", "?"), config)

    def _set_kind(self, name: str, config: QuantizationConfig | None) -> X86InductorQuantizer:
        if name not in _KINDS:
            raise ValueError(
                f"X86InductorQuantizer: got {name}, expected one of {', '.join(sorted(_KINDS))}"
            )
        self._by_kind[_KINDS[name]] = config
        return self

    def set_module_name_qconfig(
        self, module_name: str, config: QuantizationConfig | None
    ) -> X86InductorQuantizer:
        """For the layers whose weights are of the module of this dotted name, or of those inside it; tied weights have their first name."""
        self._by_name[module_name] = config
        return self

    def config_of(self, kind: str, parameter: str | None = None) -> QuantizationConfig | None:
        """The settings for a layer of a kind whose weight has this name."""
        path = (parameter or "").split(".")[:-1]
        for length in range(len(path), 0, -1):
            if (name := ".".join(path[:length])) in self._by_name:
                return self._by_name[name]
        if kind in self._by_kind:
            return self._by_kind[kind]
        return self._global if kind in _DEFAULT else None

    def annotate(self, model: GraphModule) -> GraphModule:
        _Annotator(self, model).run()
        return model

    def validate(self, model: GraphModule) -> None:
        """Nothing: every annotation that `annotate` makes can run, with integer kernels or in float."""


CPUQuantizer = X86InductorQuantizer


class _Annotator:
    """One walk over a graph: layers first, then what lies between them."""

    def __init__(self, quantizer: X86InductorQuantizer, model: GraphModule) -> None:
        self.quantizer = quantizer
        self.nodes = list(model.graph.nodes)
        self.results: set[Node] = set()  # of layers with static activations: may come as integers
        self.dynamic_convolutions = False

    def run(self) -> None:
        for node in reversed(self.nodes):  # of two that an add joins, the later one computes it
            kind = _OPERATORS.get(name_of(node))
            if kind is not None and annotation_of(node) is None:
                self._layer(node, kind)
        if self.dynamic_convolutions:
            warnings.warn(
                "X86InductorQuantizer: convolutions have no dynamic quantization; they stay in float",
                stacklevel=4,
            )
        self._check_names()
        self._between()

    def _check_names(self) -> None:
        """Warn of settings for modules without weights."""
        names = [n.meta[CONSTANT] for n in self.nodes if CONSTANT in n.meta]
        for module in self.quantizer._by_name:
            if not any(name.startswith(module + ".") for name in names):
                warnings.warn(
                    f"X86InductorQuantizer: got settings for the module {module}, which has no parameters in the program; "
                    "expected a module with a weight (tied weights have their first name)",
                    stacklevel=5,
                )

    # ---- layers

    def _layer(self, node: Node, kind: str) -> None:
        args = [a for a in node.args if isinstance(a, Node)]
        weight = args[0 if kind == "embedding" else 1]
        config = self.quantizer.config_of(kind, weight.meta.get(CONSTANT))
        if config is None or not is_float(args[0]) or not is_float(weight):
            return
        if kind == "embedding":
            if is_constant(weight) and config.weight is not None:
                _annotate(node, {weight: config.weight})
            return
        if kind == "matmul":
            if config.input_activation is not None and not config.input_activation.is_dynamic:
                _annotate(node, dict.fromkeys(args[:2], config.input_activation))
                self.results.add(node)
            return
        if not is_constant(weight) or config.weight is None:
            return
        if kind == "conv2d" and weight.meta["val"].ndim != 4:
            return
        activation = config.input_activation
        if kind == "conv2d" and activation is not None and activation.is_dynamic:
            self.dynamic_convolutions = True
            return
        specs = {args[0]: activation, weight: config.weight}
        if len(args) > 2 and config.bias is not None:
            specs[args[2]] = config.bias
        _annotate(node, specs)
        result = self._fused(node, kind, activation)
        if activation is not None and not activation.is_dynamic:
            self.results.add(result)

    def _fused(self, node: Node, kind: str, activation: QuantizationSpec | None) -> Node:
        """Annotate what follows a layer and is computed with it; the last such node."""
        user = sole_user(node)
        if kind == "conv2d" and user is not None and (other := _addend(user, node)) is not None:
            _annotate(user, {other: activation})
            node, user = user, sole_user(user)
        if user is not None and name_of(user) in CLAMPS:
            _annotate(user, {})
            node = user
        return node

    # ---- between layers

    def _between(self) -> None:
        """Adds, pooling and movement that lead from quantized layers to quantized layers only."""
        integers = set(self.results)
        for node in self.nodes:
            if annotation_of(node) is None and (result := self._may_pass(node)) is not None:
                inputs = list(inputs_of(node))
                if inputs and all(n in integers for n in inputs):
                    integers.add(result)
        for node in reversed(self.nodes):
            if annotation_of(node) is None and (result := self._may_pass(node)) is not None:
                if result in integers and result.users and all(map(_takes(result), result.users)):
                    self._pass(node, result)

    def _may_pass(self, node: Node) -> Node | None:
        """The result of a node that can work on integers as they are."""
        name = name_of(node)
        if name == "add":
            alike = len(list(inputs_of(node))) == 2 and _addend(node, node.args[0]) is not None
            return node if alike and self.quantizer.config_of("add") is not None else None
        if name in CLAMPS or name in MOVEMENT or name in POOLING:
            return result_of(node)
        return None

    def _pass(self, node: Node, result: Node) -> None:
        inputs = list(inputs_of(node))
        spec = _spec_of(result)
        if name_of(node) == "add":
            _annotate(node, dict.fromkeys(inputs, spec))
            annotation_of(node).output_qspec = spec  # type: ignore[union-attr]
            return
        shared = SharedQuantizationSpec((inputs[0], node))
        _annotate(node, {inputs[0]: spec, **dict.fromkeys(inputs[1:], shared)})
        if result is not node:
            _annotate(result, {})
        annotation_of(result).output_qspec = shared  # type: ignore[union-attr]


def _annotate(node: Node, specs: dict[Node, Any]) -> None:
    node.meta[ANNOTATION] = QuantizationAnnotation(specs, _annotated=True)


def _addend(node: Node, one: Any) -> Node | None:
    """What an add adds to `one`, if both are tensors of one shape."""
    if name_of(node) != "add" or node.kwargs or len(node.args) != 2 or annotation_of(node):
        return None
    left, right = node.args
    other = right if left is one else left
    if not isinstance(other, Node) or other is one or not is_float(other) or is_constant(other):
        return None
    alike = tuple(map(str, other.meta["val"].shape)) == tuple(map(str, one.meta["val"].shape))
    return other if alike else None


def _takes(value: Node) -> Callable[[Node], bool]:
    """Whether a user takes `value` as integers with one scale."""

    def takes(user: Node) -> bool:
        annotation = annotation_of(user)
        spec = annotation.input_qspec_map.get(value) if annotation is not None else None
        if isinstance(spec, SharedQuantizationSpec):
            return True
        return isinstance(spec, QuantizationSpec) and not spec.is_dynamic

    return takes


def _spec_of(result: Node) -> QuantizationSpec:
    """The spec with which one of its users takes a result."""
    for user in result.users:
        spec = annotation_of(user).input_qspec_map[result]  # type: ignore[union-attr]
        while isinstance(spec, SharedQuantizationSpec):
            edge = spec.edge_or_node
            assert isinstance(edge, tuple)
            spec = annotation_of(edge[1]).input_qspec_map[edge[0]]  # type: ignore[union-attr]
        assert isinstance(spec, QuantizationSpec)
        return spec
    raise AssertionError("a result between layers has users")
