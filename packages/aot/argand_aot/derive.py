"""Derivation: the backward graph of a recorded history, with gradients added in the engine's order.

The counterpart of the C++ engine (packages/autograd/csrc/engine.cc, docs/notes/engine.md).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from argand_aot.functionalize import Functionalizer
from argand_aot.tape import InputNode, TapeNode
from argand_aot.values import Edge, Geometry, UnsupportedGraph, Value

__all__ = ["derive", "derive_towards"]


class _State:
    def __init__(self, number: int, outputs: int) -> None:
        self.number = number  # in order of discovery
        self.dependencies = 0
        self.queued = False
        self.buffer: list[Value | None] = [None] * outputs


class _Engine:
    def __init__(self, f: Functionalizer) -> None:
        self.f = f
        self.states: dict[TapeNode, _State] = {}
        self.ready: list[tuple[int, int, TapeNode]] = []
        self.found: dict[int, Value] = {}
        self.delivered: set[tuple[TapeNode, int]] = set()

    def run(self, roots: Sequence[Edge], grads: Sequence[Value]) -> dict[int, Value]:
        self._discover(roots)
        for root, grad in zip(roots, grads, strict=True):
            self._deliver(root, grad)
        for root in roots:
            if self.states[root.node].dependencies == 0:
                self._push(root.node)
        while self.ready:
            self._execute(heapq.heappop(self.ready)[2])
        return self.found

    def _discover(self, roots: Sequence[Edge]) -> None:
        """Numbers nodes depth first and counts the edges into them."""
        for root in roots:
            stack = [root.node]
            while stack:
                node = stack.pop()
                if node in self.states:
                    continue
                self.states[node] = _State(len(self.states), len(node.results))
                stack.extend(e.node for e in reversed(node.edges) if e is not None)
        for node in list(self.states):
            for edge in node.edges:
                if edge is not None:
                    self.states[edge.node].dependencies += 1

    def _leads_on(self, edge: Edge | None) -> bool:
        """Whether a gradient is wanted there."""
        return edge is not None

    def _push(self, node: TapeNode) -> None:
        state = self.states[node]
        if not state.queued:
            state.queued = True
            heapq.heappush(self.ready, (-node.sequence, state.number, node))

    def _deliver(self, edge: Edge, grad: Value) -> None:
        """First + second, then + third, in order of arrival."""
        self.delivered.add((edge.node, edge.number))
        buffer = self.states[edge.node].buffer
        have = buffer[edge.number]
        buffer[edge.number] = grad if have is None else self.f.ops.add(have, grad)

    def _execute(self, node: TapeNode) -> None:
        state = self.states[node]
        builder = self.f.emitter.builder
        builder.location, builder.stack = node.place
        if isinstance(node, InputNode):
            if state.buffer[0] is not None:
                self.found[node.index] = state.buffer[0]
            return
        grads = node.backward(self.f, state.buffer, [self._leads_on(e) for e in node.edges])
        state.buffer = []
        for edge, grad in zip(node.edges, grads, strict=True):
            if edge is None or not self._leads_on(edge):
                continue
            if grad is not None:
                expected = edge.node.results[edge.number]
                self._deliver(edge, grad if expected is None else conform(self.f, grad, expected))
            target = self.states[edge.node]
            target.dependencies -= 1
            if target.dependencies == 0:
                self._push(edge.node)


class _Towards(_Engine):
    """Runs no further than to some edges, and only what leads there."""

    def __init__(self, f: Functionalizer, ends: Sequence[Edge]) -> None:
        super().__init__(f)
        self.ends: dict[TapeNode, list[int]] = {}
        for end in ends:
            self.ends.setdefault(end.node, []).append(end.number)
        self.useful: set[TapeNode] = set()
        self.arrived: dict[tuple[TapeNode, int], Value | None] = {}

    def _discover(self, roots: Sequence[Edge]) -> None:
        super()._discover(roots)
        before: dict[TapeNode, list[TapeNode]] = {}
        for node in self.states:
            for edge in node.edges:
                if edge is not None:
                    before.setdefault(edge.node, []).append(node)
        waiting = [node for node in self.ends if node in self.states]
        while waiting:
            node = waiting.pop()
            if node not in self.useful:
                self.useful.add(node)
                waiting += before.get(node, [])

    def _leads_on(self, edge: Edge | None) -> bool:
        return edge is not None and edge.node in self.useful

    def _execute(self, node: TapeNode) -> None:
        for number in self.ends.get(node, ()):
            self.arrived[node, number] = self.states[node].buffer[number]
        if any(map(self._leads_on, node.edges)):
            if self.f.recording and not node.derivable:
                raise UnsupportedGraph(
                    f"{node.name}: got gradients of gradients through it inside of one graph, expected gradients alone",
                    "take them outside of compiled code",
                )
            super()._execute(node)


def conform(f: Functionalizer, grad: Value, expected: Geometry) -> Value:
    """A gradient in the shape and dtype of what it is the gradient of."""
    if not _same_sizes(grad.shape, expected.shape):
        grad = f.ops.sum_to_size(grad, list(expected.shape))
    if grad.dtype == expected.dtype:
        return grad
    if grad.dtype.is_complex and not expected.dtype.is_complex:
        grad = f.ops.real(grad)
    if grad.dtype != expected.dtype:
        grad = f.ops._to_copy(grad, dtype=expected.dtype)
    return grad


def _same_sizes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(x is y or str(x) == str(y) for x, y in zip(a, b, strict=True))


def derive(
    f: Functionalizer, roots: Sequence[Edge], tangents: Sequence[Value]
) -> tuple[dict[int, Value], set[tuple[TapeNode, int]]]:
    """Add the backward graph.

    Args:
        f: adds the operators; it must not record.
        roots: edges of the outputs that gradients come in for.
        tangents: the gradients of these outputs.

    Returns:
        The gradient of each input that one reaches, by the input's number; and what gradients have reached, by node and result.
    """
    engine = _Engine(f)
    return engine.run(roots, tangents), engine.delivered


def derive_towards(
    f: Functionalizer, roots: Sequence[Edge], tangents: Sequence[Value], ends: Sequence[Edge]
) -> list[Value | None]:
    """Add the derivative by values inside of the graph.

    Args:
        f: adds the operators; it records them where the gradients have a history.
        roots, tangents: as for `derive`.
        ends: edges of the values to derive by.

    Returns:
        Their gradients; None for those that no root depends on.
    """
    engine = _Towards(f, ends)
    engine.run(roots, tangents)
    return [engine.arrived.get((end.node, end.number)) for end in ends]
