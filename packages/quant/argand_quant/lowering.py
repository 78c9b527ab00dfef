"""From dequantize -> operator -> quantize to operators on integers: the rewrite of graphs that are compiled."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import argand_c10 as c10
from argand_c10 import Operator
from argand_fx import Graph, GraphModule, Node
from argand_fx.schema import schema_of
from argand_fx.shapes import GraphBuilder
from argand_quant import operators as ops

__all__ = ["lower_quantized"]

_BYTES = {c10.uint8: (0, 255), c10.int8: (-128, 127)}
_MAX_PRODUCTS = 65793  # whose sum fits 32 bits
_REAL = (c10.float32, c10.bfloat16)


def lower_quantized(gm: GraphModule) -> None:
    """Replace linear layers, convolutions, matrix products, poolings and embeddings of dequantized values by integer operators.

    A following sum, relu and quantize become part of the operator. Weights are packed once, and kept (`qlinear_prepack`). What has no
    integer operator stays between dequantize and quantize, as loops that are fused.
    """
    rewrite = _Rewrite(gm.graph)
    for node in list(gm.graph.nodes):
        make = _RULES.get(_name(node))
        if make is not None and node.users:
            make(rewrite, node)
    _keep_channels_last(gm.graph)
    gm.recompile()


# ---- reading graphs ------------------------------------------------------------------------------------------------------
def _name(node: Any) -> str:
    if isinstance(node, Node) and isinstance(node.target, Operator):
        return node.target.name.removeprefix("quantized_decomposed::")
    return ""


def _value(node: Any) -> Any:
    return node.meta["val"] if isinstance(node, Node) else node


def _arguments(node: Node) -> dict[str, Any]:
    """By name, defaults filled in."""
    parameters = schema_of(node.target).arguments
    given = dict(zip([p.name for p in parameters], node.args, strict=False)) | dict(node.kwargs)
    return {p.name: given.get(p.name, p.default) for p in parameters}


@dataclass(frozen=True, slots=True)
class _Quantized:
    """Integers of 8 bits with one scale and zero point, and the node that turns them into numbers."""

    integers: Node
    scale: float
    zero_point: int


def _dequantized(node: Any) -> _Quantized | None:
    if _name(node) != "dequantize_per_tensor" or _value(node).dtype is not c10.float32:
        return None
    a = _arguments(node)
    if _value(a["input"]).dtype not in _BYTES or not isinstance(a["scale"], float):
        return None
    low, high = _BYTES[_value(a["input"]).dtype]
    if not low <= a["zero_point"] <= high:
        return None
    return _Quantized(a["input"], a["scale"], a["zero_point"])


@dataclass(frozen=True, slots=True)
class _Weight:
    """An int8 weight with zero point 0; `scales` has one entry, or one for each of its rows."""

    integers: Node
    scales: Node | float


def _weight(node: Any) -> _Weight | None:
    name = _name(node)
    if name not in ("dequantize_per_tensor", "dequantize_per_channel"):
        return None
    a = _arguments(node)
    if _value(a["input"]).dtype is not c10.int8 or _value(node).dtype is not c10.float32:
        return None
    if name == "dequantize_per_tensor":
        known = isinstance(a["scale"], float) and a["zero_point"] == 0
        return _Weight(a["input"], a["scale"]) if known else None
    if a["axis"] not in (0, -_value(node).ndim) or a["zero_points"] is not None:
        return None
    return _Weight(a["input"], a["scales"])


@dataclass(slots=True)
class _Tail:
    """What follows an operator and becomes part of it: `last` is the node whose place it takes."""

    last: Node
    options: dict[str, Any] = field(default_factory=dict)
    scale: float = 1.0
    zero_point: int = 0
    dtype: c10.dtype = c10.float32


def _only_user(node: Node) -> Node | None:
    users = list(node.users)
    return users[0] if len(users) == 1 else None


def _summand(user: Node, node: Node) -> dict[str, Any] | None:
    """The other operand of `user`, a sum with `node`, as an operator's arguments."""
    if _name(user) != "add":
        return None
    a = _arguments(user)
    other = a["other"] if a["self"] is node else a["self"]
    if not isinstance(other, Node) or other is node or a["alpha"] != 1:
        return None
    if (
        tuple(_value(other).shape) != tuple(_value(node).shape)
        or _value(other).dtype is not c10.float32
    ):
        return None
    q = _dequantized(other)
    if q is None:
        return {"other": other}
    return {"other": q.integers, "other_scale": q.scale, "other_zero_point": q.zero_point}


def _tail(node: Node, with_sum: bool = True, with_relu: bool = True) -> _Tail:
    tail = _Tail(node)
    user = _only_user(node)
    if user is not None and with_sum and (other := _summand(user, node)) is not None:
        tail.last, tail.options = user, other
        user = _only_user(user)
    if user is not None and with_relu and _name(user) == "relu":
        tail.last = user
        tail.options["post_op"] = "relu"
        user = _only_user(user)
    if user is not None and _name(user) == "quantize_per_tensor":
        a = _arguments(user)
        full = _BYTES.get(a["dtype"]) == (a["quant_min"], a["quant_max"])
        if full and isinstance(a["scale"], float) and a["scale"] > 0:
            tail.last, tail.scale, tail.zero_point, tail.dtype = (
                user,
                a["scale"],
                a["zero_point"],
                a["dtype"],
            )
    return tail


# ---- rewriting -----------------------------------------------------------------------------------------------------------
class _Rewrite:
    """Makes nodes in the place of others."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._builder = GraphBuilder()
        self._packed: dict[tuple[Any, ...], Node] = {}

    def call(self, name: str, *args: Any, **kwargs: Any) -> Node:
        """A node of an operator of the package, or of aten, where the graph is being added to."""
        target = ops.operators.get(name) or c10.find_operator(name)
        fakes = [_value(a) for a in args], {k: _value(v) for k, v in kwargs.items()}
        node = self.graph.create_node("call_function", target, args, kwargs)
        node.meta["val"] = self._builder.call(target, *fakes)
        node.meta.update({k: v for k, v in self._origin.meta.items() if k in ("location", "stack")})
        return node

    def packed(self, name: str, weight: Node, *args: Any) -> Node:
        """As `call`, for packed weights: once for each weight, before all that may read it."""
        key = (name, weight, *args)
        if key not in self._packed:
            at = weight.next
            while at.op == "placeholder":
                at = at.next
            with self.graph.inserting_before(at):
                self._packed[key] = self.call(name, weight, *args)
        return self._packed[key]

    def replace(self, old: Node, make: Callable[[], Node]) -> None:
        """`make()` adds nodes before `old`; the one that it returns takes its place."""
        self._origin = old
        with self.graph.inserting_before(old):
            old.replace_all_uses_with(make())
        self.drop(old)

    def drop(self, node: Node) -> None:
        """Erase a node that nothing reads, and what only it read."""
        if node.users or node.op != "call_function":
            return
        inputs = node.all_input_nodes
        self.graph.erase_node(node)
        for source in inputs:
            self.drop(source)

    def scales(self, weight: _Weight, rows: int) -> Node:
        """One scale a row."""
        if isinstance(weight.scales, float):
            return self.call("full", [rows], weight.scales, dtype=c10.float32)
        found = weight.scales
        if _value(found).numel() == 1 and rows != 1:
            return self.call("expand", self.call("view", found, [1]), [rows])
        return found


def _lower_linear(rewrite: _Rewrite, node: Node) -> None:
    a = _arguments(node)
    weight = _weight(a["weight"])
    if weight is None or _value(weight.integers).ndim != 2:
        return
    rows, k = _value(weight.integers).shape
    if k > _MAX_PRODUCTS or _value(a["input"]).ndim < 1:
        return
    if _name(a["input"]) == "dequantize_per_tensor.tensor":
        return _lower_dynamic_linear(rewrite, node, a, weight)
    x = _dequantized(a["input"])
    if x is None:
        return
    tail = _tail(node)

    def make() -> Node:
        packed = rewrite.packed("qlinear_prepack", weight.integers)
        return rewrite.call(
            "qlinear", x.integers, x.scale, x.zero_point, packed, rewrite.scales(weight, rows), a["bias"],
            tail.scale, tail.zero_point, tail.dtype, **tail.options,
        )  # fmt: skip

    rewrite.replace(tail.last, make)


def _quantized_by_range(d: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of choose_qparams if it gave the parameters of this dequantize, whose input was quantized by them."""
    scale, zero_point, q = d["scale"], d["zero_point"], d["input"]
    if not all(isinstance(n, Node) and n.target is operator.getitem for n in (scale, zero_point)):
        return None
    source = scale.args[0]
    if scale.args[1] != 0 or zero_point.args != (source, 1):
        return None
    if _name(source) != "choose_qparams.tensor" or _name(q) != "quantize_per_tensor.tensor":
        return None
    chosen, quantize = _arguments(source), _arguments(q)
    same = all(chosen[n] == quantize[n] for n in ("quant_min", "quant_max", "dtype"))
    same &= quantize["scale"] is scale and quantize["zero_point"] is zero_point
    return chosen if same and quantize["input"] is chosen["input"] else None


def _lower_dynamic_linear(
    rewrite: _Rewrite, node: Node, a: dict[str, Any], weight: _Weight
) -> None:
    """A linear layer whose input is quantized by parameters found in it."""
    d = _arguments(a["input"])
    if _value(d["input"]).dtype not in _BYTES or d["out_dtype"] not in (None, c10.float32):
        return
    tail = _Tail(node)
    if (user := _only_user(node)) is not None and _name(user) == "relu":
        tail = _Tail(user, {"post_op": "relu"})
    rows = _value(weight.integers).shape[0]
    found = _quantized_by_range(d)

    def make() -> Node:
        packed = rewrite.packed("qlinear_prepack", weight.integers)
        name, given = "qlinear_tensor", [d["input"], d["scale"], d["zero_point"]]
        if found is not None:
            name = "qlinear_dynamic"
            given = [found[n] for n in ("input", "quant_min", "quant_max", "eps", "dtype")]
        rest = (packed, rewrite.scales(weight, rows), a["bias"], c10.float32)
        return rewrite.call(name, *given, *rest, **tail.options)

    rewrite.replace(tail.last, make)


def _lower_convolution(rewrite: _Rewrite, node: Node) -> None:
    a = _arguments(node)
    x, weight = _dequantized(a["input"]), _weight(a["weight"])
    if x is None or weight is None or _value(x.integers).ndim != 4:
        return
    rows, per_group, *kernel = _value(weight.integers).shape
    if -(-per_group // 4) * 4 * kernel[0] * kernel[1] > _MAX_PRODUCTS:
        return
    tail = _tail(node)
    window = (kernel, a["stride"], a["padding"], a["dilation"])

    def make() -> Node:
        packed = rewrite.packed("qconv2d_prepack", weight.integers, a["groups"])
        return rewrite.call(
            "qconv2d", x.integers, x.scale, x.zero_point, packed, rewrite.scales(weight, rows), a["bias"],
            *window, a["groups"], tail.scale, tail.zero_point, tail.dtype, **tail.options,
        )  # fmt: skip

    rewrite.replace(tail.last, make)


def _lower_matmul(rewrite: _Rewrite, node: Node) -> None:
    left, right = (_dequantized(n) for n in node.args[:2])
    if left is None or right is None:
        return
    shapes = [tuple(_value(n).shape) for n in node.args[:2]]
    k = shapes[0][-1]
    if len(shapes[0]) < 2 or shapes[0][:-2] != shapes[1][:-2] or not isinstance(k, int):
        return
    if k > _MAX_PRODUCTS // 2:
        return
    tail = _tail(node, with_sum=False, with_relu=False)
    rewrite.replace(
        tail.last,
        lambda: rewrite.call(
            "qmatmul", left.integers, left.scale, left.zero_point, right.integers, right.scale, right.zero_point,
            tail.scale, tail.zero_point, tail.dtype,
        ),
    )  # fmt: skip


def _lower_max_pool(rewrite: _Rewrite, node: Node) -> None:
    """The greatest integer stands for the greatest number: the pooling moves before the dequantize."""
    a = _arguments(node)
    source, x = a["self"], _dequantized(a["self"])
    integers = source if x is None else x.integers
    values = [u for u in node.users if u.target is operator.getitem and u.args[1] == 0]
    if (
        _value(integers).dtype not in _BYTES
        or _value(integers).ndim != 4
        or len(values) != len(node.users)
    ):
        return
    window = [a[n] for n in ("kernel_size", "stride", "padding", "dilation", "ceil_mode")]

    def make() -> Node:
        pooled = rewrite.call("qmax_pool2d", integers, *window)
        if x is None:
            return pooled
        return rewrite.call("dequantize_per_tensor", pooled, *source.args[1:], **source.kwargs)

    for value in values:
        rewrite.replace(value, make)


def _lower_quantize(rewrite: _Rewrite, node: Node) -> None:
    """Integers that are dequantized and quantized again by the same parameters stay as they are."""
    source = node.args[0]
    x = _dequantized(source)
    if x is None:
        return
    before, after = _arguments(source), _arguments(node)
    same = all(before[n] == after[n] for n in ("scale", "zero_point", "dtype"))
    if same and _BYTES.get(after["dtype"]) == (after["quant_min"], after["quant_max"]):
        node.replace_all_uses_with(x.integers)
        rewrite.drop(node)


def _lower_embedding(rewrite: _Rewrite, node: Node) -> None:
    a = _arguments(node)
    table = a["weight"]
    if _name(table) != "dequantize_per_channel" or _value(table).dtype is not c10.float32:
        return
    w = _arguments(table)
    rows = _value(table).shape[0]
    if _value(w["input"]).dtype not in _BYTES or w["axis"] not in (0, -2):
        return

    def make() -> Node:
        zeros = w["zero_points"]
        if zeros is None:
            zeros = rewrite.call("full", [rows], 0, dtype=c10.int64)
        return rewrite.call("qembedding", w["input"], w["scales"], zeros, a["indices"])

    rewrite.replace(node, make)


_RULES: dict[str, Callable[[_Rewrite, Node], None]] = {
    "linear": _lower_linear,
    "convolution": _lower_convolution,
    "bmm": _lower_matmul,
    "matmul": _lower_matmul,
    "mm": _lower_matmul,
    "max_pool2d_with_indices": _lower_max_pool,
    "quantize_per_tensor": _lower_quantize,
    "embedding": _lower_embedding,
}


# ---- layouts -------------------------------------------------------------------------------------------------------------
_CHANNELS_LAST = frozenset({"quantized::qconv2d", "quantized::qmax_pool2d"})
_ANY_LAYOUT = _CHANNELS_LAST | {"dequantize_per_tensor", "quantize_per_tensor"}


def _keep_channels_last(graph: Graph) -> None:
    """Images lie channels last, as the kernels make them, where all that reads them takes any layout."""
    for node in graph.nodes:
        if _name(node) in _CHANNELS_LAST and all(_name(u) in _ANY_LAYOUT for u in node.users):
            node.kwargs = {**node.kwargs, "channels_last": True}
            sizes = node.meta["val"].shape
            _, c, h, w = sizes
            node.meta["val"] = GraphBuilder().fake(
                sizes, node.meta["val"].dtype, strides=(c * h * w, 1, w * c, c)
            )
