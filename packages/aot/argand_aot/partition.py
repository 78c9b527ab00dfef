"""Partitioning of a joint graph into a forward and a backward graph: what is kept between them is a minimum cut, by bytes.

Values that are cheap to compute from kept ones are computed again by the backward graph, and always those whose node
says so (`meta["recompute"]`). Inputs and results are kept only
where eager execution would keep them too: the program may change others before it runs backward.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from argand_aot.joint import Backward, Joint
from argand_aot.min_cut import INFINITE, FlowNetwork
from argand_aot.values import geometry_of, hint_of, is_dense
from argand_autograd.early_gradients import GRADIENT_READY
from argand_c10 import Operator
from argand_c10.rules import rules_of
from argand_fx import Graph, GraphModule, Node
from argand_fx.schema import overload
from argand_fx.shapes import FakeTensor
from argand_fx.symbolic import SymbolicValue

__all__ = ["Partition", "extract_backward", "extract_forward", "partition"]

# Operators that cost about as little as reading their result would.
_CHEAP = frozenset(
    """add sub rsub mul neg abs sign relu square where eq ne lt le gt ge logical_and logical_or logical_not logical_xor
    bitwise_and bitwise_or bitwise_xor bitwise_not maximum minimum clamp clamp_min clamp_max masked_fill _to_copy full
    threshold isnan isinf isfinite tril triu clone hardtanh relu6 leaky_relu""".split()
)
_MAX_DEPTH = 6  # cheap operators in a row that are computed again


@dataclass(frozen=True, slots=True)
class Partition:
    """What the forward graph keeps for the backward graph.

    Attributes:
        inputs: placeholders that backward reads again.
        values: nodes that the forward graph returns.
        extra: those of `values` that it returns for backward alone, after its results.
        copied: those of `values` that are kept as copies, since they are views.
    """

    inputs: tuple[Node, ...]
    values: tuple[Node, ...]
    extra: tuple[Node, ...]
    copied: frozenset[Node]


def partition(joint: Joint, backward: Backward) -> Partition:
    """Choose what to keep."""
    tangent_dependent = _dependents(joint.graph, backward.tangents)
    ends = [n for n in backward.grads if n is not None]
    direct = _needed_directly(ends, tangent_dependent)
    mutated = {joint.placeholders[m.input] for m in joint.mutations}
    cut = _cut(direct, _Weights(joint, ends, mutated))
    storages = {n.meta["val"].storage for n in mutated}
    given = {
        n.meta["val"].storage for n in joint.placeholders if isinstance(n.meta["val"], FakeTensor)
    }
    order = {n: i for i, n in enumerate(joint.graph.nodes)}
    values = sorted(
        (n for n in cut if n.op != "placeholder" or n in mutated), key=order.__getitem__
    )
    taken = {n.meta["val"].storage for n in joint.results}
    results = set(joint.results)
    copied = set()
    for n in values:
        storage = n.meta["val"].storage
        if n not in results and (storage in taken or storage in storages or storage in given):
            copied.add(n)
        taken.add(storage)
    inputs = sorted(
        (n for n in cut if n.op == "placeholder" and n not in mutated), key=order.__getitem__
    )
    extra = tuple(n for n in values if n not in results)
    return Partition(tuple(inputs), tuple(values), extra, frozenset(copied))


def _dependents(graph: Graph, sources: Iterable[Node]) -> set[Node]:
    found = set(sources)
    for n in graph.nodes:
        if any(i in found for i in n.all_input_nodes):
            found.add(n)
    return found


def _needed_directly(ends: Sequence[Node], tangent_dependent: set[Node]) -> set[Node]:
    """The forward values that the backward computation reads or returns."""
    found: set[Node] = {n for n in ends if n not in tangent_dependent}
    seen: set[Node] = set()
    stack = [n for n in ends if n in tangent_dependent]
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        for i in n.all_input_nodes:
            if i in tangent_dependent:
                stack.append(i)
            else:
                found.add(i)
    return found


def _closure(nodes: Iterable[Node]) -> list[Node]:
    """The nodes and all that they are computed from, in graph order."""
    seen: set[Node] = set()
    stack = list(nodes)
    while stack:
        n = stack.pop()
        if n not in seen:
            seen.add(n)
            stack.extend(n.all_input_nodes)
    return list(seen)


def _cut(direct: set[Node], weights: _Weights) -> set[Node]:
    """The nodes to keep, so that every node of `direct` can be computed."""
    closure = _closure(direct)
    depth: dict[Node, int] = {}
    network = FlowNetwork()
    entry: dict[Node, int] = {}
    leave: dict[Node, int] = {}
    for n in sorted(closure, key=_position(closure)):
        entry[n], leave[n] = network.add_node(), network.add_node()
        weight = weights.of(n)
        network.add_edge(entry[n], leave[n], weight)
        again = _can_repeat(n) and n not in weights.materialized
        if n.meta.get("recompute"):
            depth[n] = 0
        elif again and weight < INFINITE:
            below = [depth.get(i, 0) for i in n.all_input_nodes]
            level = max(below, default=0) + (0 if _is_view(n) else 1)
            again = level <= _MAX_DEPTH
            depth[n] = level if again else 0
        if not again:
            network.add_edge(0, entry[n], INFINITE)
        else:
            for i in n.all_input_nodes:
                network.add_edge(leave[i], entry[n], INFINITE)
        if n in direct:
            network.add_edge(leave[n], 1, INFINITE)
    on_source = network.source_side()
    return {n for n in closure if on_source[entry[n]] and not on_source[leave[n]]}


def _position(nodes: Sequence[Node]) -> Any:
    graph = nodes[0].graph if nodes else None
    order = {n: i for i, n in enumerate(graph.nodes)} if graph is not None else {}
    return order.__getitem__


def _is_view(n: Node) -> bool:
    return isinstance(n.target, Operator) and n.target.is_view


def _can_repeat(n: Node) -> bool:
    """May the backward graph compute it again from its inputs?"""
    if n.op == "get_attr":
        return True
    if n.op != "call_function":
        return False
    if n.target is operator.getitem or n.meta.get("recompute"):
        return True
    op = n.target
    if not isinstance(op, Operator) or op.is_random:
        return False
    if op.is_view or op.name in _CHEAP:
        return True
    rules = rules_of(op)
    return rules is not None and rules.kind == "factory" and not n.all_input_nodes


class _Weights:
    """What keeping a value costs, in bytes.

    Args:
        ends: what the backward graph computes.
        mutated: inputs that the graph changes.

    Attributes:
        materialized: what operators of the backward graph read that do not fuse with what makes it: computing it again
            would cost a pass over memory of its own.
    """

    def __init__(self, joint: Joint, ends: Sequence[Node], mutated: set[Node]) -> None:
        self._joint = joint
        self._mutated = mutated
        self._read: set[Node] = set(joint.leaves)
        self.materialized: set[Node] = set()
        for n in _closure(ends):
            if n not in joint.forward:
                if not _is_fused(n):
                    self.materialized.update(map(_with_bases, n.all_input_nodes))
                self._read.update(_with_bases(i) for i in n.all_input_nodes if i in joint.forward)
                self._read.update(i for i in n.all_input_nodes if i in joint.forward)

    def of(self, n: Node) -> int:
        """Inputs and results that eager execution keeps are alive anyway; others may be changed by the program."""
        value = n.meta.get("val")
        if n.op == "get_attr" or not isinstance(value, FakeTensor) or n.meta.get("recompute"):
            return INFINITE
        size = value.dtype.itemsize
        for s in value.shape:
            size *= hint_of(s)
        joint = self._joint
        if n in joint.result_set or (n.op == "placeholder" and n not in self._mutated):
            return 1 + size // 16 if n in self._read else INFINITE
        # A view keeps a copy where its base would do; of equal ones the forward graph's own are kept.
        return (
            2 + size + (size // 2 if _is_view(n) else 0) + (0 if n in joint.forward else size // 64)
        )


def _is_fused(n: Node) -> bool:
    """Does it become part of a loop together with what it reads?"""
    if not isinstance(n.target, Operator):
        return True
    if n.target.is_view or n.target.name in _CHEAP:
        return True
    rules = rules_of(n.target)
    return rules is None or rules.kind not in ("contraction", "opaque")


def _with_bases(n: Node) -> Node:
    """What a view is a view of."""
    while _is_view(n):
        n = n.args[0]
    return n


# ---- the two graphs ------------------------------------------------------------------------------


def extract_forward(joint: Joint, chosen: Partition | None) -> GraphModule:
    """The forward graph: all inputs, results, then what is kept."""
    kept = chosen.extra if chosen is not None else ()
    new = Graph()
    env: dict[Node, Node] = {n: new.node_copy(n) for n in joint.placeholders}
    wanted = set(_closure([*joint.results, *kept, *joint.effects]))
    for n in joint.graph.nodes:
        if n in wanted and n not in env:
            env[n] = new.node_copy(n, env.__getitem__)
    values: list[Node] = [env[n] for n in joint.results]
    for n in kept:
        values.append(_copy(new, env[n]) if chosen is not None and n in chosen.copied else env[n])
    out = new.output(tuple(values))
    out.meta["val"] = tuple(n.meta["val"] for n in values)
    return GraphModule(_used(joint.root, new), new, "Forward")


def _copy(graph: Graph, node: Node, keep_layout: bool = False) -> Node:
    """A copy in row-major order, or in the layout of `node`, if a new tensor can have that."""
    like: FakeTensor = node.meta["val"]
    kept = keep_layout and is_dense(geometry_of(like))
    copy = graph.call_function(overload("clone"), (node,), {} if kept else {"memory_format": 0})
    copy.meta = dict(node.meta)
    strides = like.stride() if kept else None
    copy.meta["val"] = FakeTensor(like.shape, strides, 0, like.dtype, like.device, node=copy)
    return copy


def extract_backward(
    joint: Joint,
    chosen: Partition,
    backward: Backward,
    symbols: Sequence[str],
    early: bool = False,
) -> GraphModule:
    """The backward graph.

    Its inputs are these symbols, kept inputs, kept values, and tangents; it returns a gradient or None per differentiable
    input. With `early` it also calls `gradient_ready` with each gradient of a leaf as soon as that is final.
    """
    new = Graph()
    env: dict[Node, Node] = {}
    ends = [n for n in backward.grads if n is not None]
    given = [*chosen.inputs, *chosen.values, *backward.tangents]
    body = _body(ends, set(given))
    for name in symbols:
        node = new.placeholder(name)
        node.meta["val"] = _symbol(joint, name)
    for n in given:
        node = env[n] = new.placeholder(n.name)
        like: FakeTensor = n.meta["val"]
        strides = None if n in chosen.copied else like.stride()
        offset = like.storage_offset() if n.op == "placeholder" else 0
        node.meta["val"] = FakeTensor(
            like.shape, strides, offset, like.dtype, like.device, node=node
        )
        if "zero_gaps" in n.meta and n not in chosen.copied:
            node.meta["zero_gaps"] = True
    for n in joint.graph.nodes:
        if n in body:
            env[n] = new.node_copy(n, env.__getitem__)
    returned: list[Any] = []
    taken: set[Any] = set()
    for end in backward.grads:
        if end is None:
            returned.append(None)
            continue
        node = env[end]
        storage = node.meta["val"].storage
        if node.op in ("placeholder", "get_attr") or storage in taken or _views_input(node):
            node = _copy(new, node, keep_layout=True)
            storage = node.meta["val"].storage
        taken.add(storage)
        returned.append(node)
    if early:
        leaves = [joint.placeholders[i] in joint.leaves for i in joint.differentiable_inputs]
        returned += _tell_of_gradients(new, returned, leaves)
    out = new.output(tuple(returned))
    out.meta["val"] = tuple(None if n is None else n.meta["val"] for n in returned)
    return GraphModule(_used(joint.root, new), new, "Backward")


def _tell_of_gradients(graph: Graph, grads: Sequence[Any], leaves: Sequence[bool]) -> list[Node]:
    """Calls of `gradient_ready`, each behind a gradient of a leaf that nothing else in the graph reads: it may be changed from then on."""
    calls = []
    for index, (node, is_leaf) in enumerate(zip(grads, leaves, strict=True)):
        if node is None or not is_leaf or not _is_read_by_none(node):
            continue
        with graph.inserting_after(node):
            call = graph.call_function(overload(GRADIENT_READY), (node, index))
        like: FakeTensor = node.meta["val"]
        call.meta = dict(node.meta)
        call.meta["val"] = FakeTensor([0], None, 0, like.dtype, like.device, node=call)
        calls.append(call)
    return calls


def _is_read_by_none(node: Node) -> bool:
    """Is the memory of a value that is not used read under another name?"""
    while _is_view(node):
        node = node.args[0]
        if len(node.users) != 1:
            return False
    return True


def _views_input(node: Node) -> bool:
    """Is its memory that of an input?"""
    while _is_view(node):
        node = node.args[0]
    return node.op in ("placeholder", "get_attr")


def _body(ends: Sequence[Node], given: set[Node]) -> set[Node]:
    seen: set[Node] = set()
    stack = [n for n in ends if n not in given]
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        if n.op == "placeholder":
            raise AssertionError(
                f"partition: {n.name} is needed by the backward graph, but not kept"
            )
        seen.add(n)
        stack.extend(i for i in n.all_input_nodes if i not in given)
    return seen


def _symbol(joint: Joint, name: str) -> Any:
    """The symbolic integer of this name, as some input has it."""
    for n in joint.placeholders:
        value = n.meta["val"]
        if isinstance(value, SymbolicValue) and str(value) == name:
            return value
        if isinstance(value, FakeTensor):
            for s in (*value.shape, *value.stride()):
                if isinstance(s, SymbolicValue) and str(s) == name:
                    return s
    raise AssertionError(f"partition: no input gives the symbol {name}")


def _used(root: dict[str, Any], graph: Graph) -> dict[str, Any]:
    names = {n.target for n in graph.nodes if n.op == "get_attr"}
    return {k: v for k, v in root.items() if k in names}
