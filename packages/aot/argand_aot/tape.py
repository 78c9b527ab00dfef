"""The history of values that eager execution would have: nodes, edges, and what in-place changes and views do to them.

The counterpart of the C++ tape (packages/autograd/csrc: tape.cc, history.cc, view_nodes.cc), without data. The order of
nodes decides in which order gradients are added (docs/notes/engine.md), so nodes are made where the tape makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from argand_aot import view_steps
from argand_aot.values import (
    Edge,
    Geometry,
    UnsupportedGraph,
    Value,
    ViewStep,
    kept_value,
    map_values,
    values_in,
)
from argand_c10 import Operator
from argand_c10.rules import Rules

if TYPE_CHECKING:
    from argand_aot.functionalize import Functionalizer

__all__ = ["InputNode", "Tape", "TapeNode", "is_differentiable"]

_ACCUMULATE = 1 << 62  # sequence of input nodes: they run as soon as they are ready


def is_differentiable(dtype: Any) -> bool:
    """Can tensors of this dtype require grad?"""
    return bool(dtype.is_floating_point or dtype.is_complex)


class TapeNode:
    """A function from the gradients of results to those of arguments.

    Attributes:
        sequence: nodes made later have higher ones.
        edges: where its results go; None where no gradient is wanted.
        results: geometry of the forward results; None where there is no tensor.
        place: the user's code that made it: location and stack.
        derivable: whether its gradients have a history where what runs them records.
    """

    name = ""
    derivable = True

    def __init__(
        self, sequence: int, edges: Sequence[Edge | None], results: Sequence[Geometry | None]
    ) -> None:
        self.sequence = sequence
        self.edges = list(edges)
        self.results = list(results)
        self.place: tuple[Any, Any] = (None, None)

    def backward(
        self, f: Functionalizer, grads: Sequence[Value | None], wanted: Sequence[bool]
    ) -> list[Value | None]:
        """A gradient or None per edge.

        Args:
            f: adds the operators of the backward graph.
            grads: per forward result; None where nothing flowed in.
            wanted: per edge.
        """
        raise AssertionError("overridden by every node")


class InputNode(TapeNode):
    """Where the gradient of an input ends."""

    name = "input"

    def __init__(self, index: int, geometry: Geometry) -> None:
        super().__init__(_ACCUMULATE, [], [geometry])
        self.index = index


class OpNode(TapeNode):
    """The node of an operator: its gradient rule with what it keeps.

    Attributes:
        args, kept: arguments and results as they were, frozen.
        positions: the argument (number, or number and entry of a list) of each edge.
    """

    def __init__(
        self,
        sequence: int,
        op: Operator,
        rules: Rules | None,
        edges: Sequence[Edge | None],
        positions: Sequence[tuple[int, int | None]],
        args: Sequence[Any],
        results: Sequence[Geometry | None],
    ) -> None:
        super().__init__(sequence, edges, results)
        self.name = op.name
        self.rules = rules
        self.args = args
        self.positions = positions
        self.kept: Sequence[Value] = ()

    def backward(
        self, f: Functionalizer, grads: Sequence[Value | None], wanted: Sequence[bool]
    ) -> list[Value | None]:
        out: list[Value | None] = [None] * len(self.edges)
        if all(g is None for g in grads):
            return out
        rule = self.rules.derivative if self.rules is not None else None
        if rule is None:
            raise UnsupportedGraph(
                f"{self.name}: the derivative of this operator is not implemented",
                "detach its arguments, or write it as a custom Function",
            )
        needs = [False] * len(self.args)
        for (i, _), want in zip(self.positions, wanted, strict=True):
            needs[i] = needs[i] or want
        found = rule(f.ops, list(grads), list(self.args), list(self.kept), needs)
        for k, (i, entry) in enumerate(self.positions):
            if wanted[k] and found[i] is not None:
                out[k] = found[i] if entry is None else found[i][entry]
        return out


class ViewNode(TapeNode):
    """The history of a view whose base has changed: zeros with the gradient in its place."""

    name = "as_strided"

    def __init__(
        self, sequence: int, base: Geometry, steps: tuple[ViewStep, ...], edge: Edge
    ) -> None:
        super().__init__(sequence, [edge], [steps[-1].result if steps else base])
        self.base = base
        self.steps = steps

    def backward(
        self, f: Functionalizer, grads: Sequence[Value | None], wanted: Sequence[bool]
    ) -> list[Value | None]:
        grad = grads[0]
        if grad is None or not wanted[0]:
            return [None]
        for i in reversed(range(len(self.steps))):
            before = self.steps[i - 1].result if i else self.base
            grad = _step_gradient(f, self.steps[i], before, grad)
        return [grad]


def _step_gradient(f: Functionalizer, step: ViewStep, source: Geometry, grad: Value) -> Value:
    rule = view_steps.derivative(step)
    if rule is None:
        raise UnsupportedGraph(
            f"{step.op.name}: got a change of the tensor behind such a view where gradients are wanted",
            "clone the view before the change",
        )
    needs = [True] + [False] * len(step.args)
    args = [_Shape(source), *step.args]
    result: Value = rule(f.ops, [grad], args, [_Shape(step.result)], needs)[0]
    return result


class _Shape:
    """A tensor of which only the geometry is known: all that the gradients of views read."""

    def __init__(self, geometry: Geometry) -> None:
        self.shape, self.strides, self.offset = (
            geometry.shape,
            list(geometry.strides),
            geometry.offset,
        )
        self.dtype, self.device, self.ndim = geometry.dtype, geometry.device, geometry.ndim


class CopySlices(TapeNode):
    """The history of a base whose view was changed in place by `fn`."""

    name = "copy_slices"
    derivable = False

    def __init__(
        self,
        sequence: int,
        base: Geometry,
        steps: tuple[ViewStep, ...],
        fn: TapeNode,
        output_nr: int,
        base_edge: Edge | None,
    ) -> None:
        super().__init__(sequence, [base_edge, *fn.edges[1:]], [base])
        self.base = base
        self.steps = steps
        self.fn = fn
        self.output_nr = output_nr

    def backward(
        self, f: Functionalizer, grads: Sequence[Value | None], wanted: Sequence[bool]
    ) -> list[Value | None]:
        from argand_aot.values import fresh_value

        grad = grads[0]
        if grad is None:
            return [None] * len(self.edges)
        whole = f.read(grad)
        part, source = whole, self.base
        for step in self.steps:
            part = view_steps.apply(f, step, part, source)
            source = step.result
        inner: list[Value | None] = [None] * len(self.fn.results)
        inner[self.output_nr] = fresh_value(part)
        out = self.fn.backward(f, inner, [True, *wanted[1:]])
        result: list[Value | None] = [None, *out[1:]]
        if wanted[0]:
            view = fresh_value(part, source)
            replaced = f.ops.zeros_like(view) if out[0] is None else out[0]
            content = f._conformed(f.read(replaced), view)
            result[0] = fresh_value(view_steps.put(f, whole, self.base, self.steps, content))
        return result


class Tape:
    """Records what `Functionalizer` runs.

    Attributes:
        inputs: the nodes of the inputs that require grad, by number.
        place: the user's code that runs: location and stack; kept with the nodes.
    """

    def __init__(self) -> None:
        self.inputs: dict[int, InputNode] = {}
        self.place: tuple[Any, Any] = (None, None)
        self._sequence = 0

    def next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence

    def _placed(self, node: TapeNode) -> None:
        node.place = self.place

    def add_input(self, value: Value, index: int) -> None:
        """An input that requires grad."""
        value.grad_fn = self.inputs[index] = InputNode(index, value.geometry)

    # ---- edges -----------------------------------------------------------------------------------

    def edge_of(self, value: Value) -> Edge | None:
        """Where gradients of `value` go; None if it does not require grad."""
        if not is_differentiable(value.dtype):
            return None
        node = value.grad_fn if value.base is None else self._view_history(value)
        return None if node is None else Edge(node, value.output_nr)

    def _view_history(self, view: Value) -> TapeNode | None:
        """Made anew if the base has changed since."""
        base = view.base
        assert base is not None
        version = view.storage.version
        if view.no_grad_view:
            return None
        made = base.grad_fn is not None and not isinstance(base.grad_fn, InputNode)
        if view.view_version is None:
            if not made:
                return None
            view.view_version = version - 1
        if view.view_version == version:
            return view.grad_fn
        edge = self.edge_of(base)
        view.view_version = version
        if edge is None:
            return view.grad_fn
        view.grad_fn = self._view_node(view, edge)
        view.output_nr = 0
        return view.grad_fn

    def _view_node(self, view: Value, edge: Edge) -> ViewNode:
        assert view.base is not None
        node = ViewNode(self.next_sequence(), view.base.geometry, _relative_steps(view), edge)
        self._placed(node)
        return node

    def needed(self, rules: Rules | None, bound: Sequence[Any]) -> list[bool] | None:
        """Per argument, whether it requires grad and the operator has a gradient for it; None if none does."""
        if rules is not None and not rules.differentiable:
            return None
        rule = rules.derivative if rules is not None else None
        among = _flowing(rule, 0, len(bound))
        found = [False] * len(bound)
        for i in among:
            found[i] = any([self.edge_of(v) is not None for v in values_in(bound[i])])
        return found if any(found) else None

    # ---- recording ---------------------------------------------------------------------------------

    def set_history(self, value: Value, node: TapeNode, output_nr: int) -> None:
        value.grad_fn = node
        value.output_nr = output_nr
        if value.base is not None:
            value.view_version = value.storage.version
            value.no_grad_view = False

    def _edges(
        self, rule: Any, bound: Sequence[Any], needed: Sequence[bool], in_place: bool
    ) -> tuple[list[Edge | None], list[tuple[int, int | None]]]:
        """The edges of an operator's node in argument order, and which arguments they belong to."""
        among = set(_flowing(rule, 0, len(bound)))
        if in_place:
            among.add(0)
        edges: list[Edge | None] = []
        positions: list[tuple[int, int | None]] = []
        for i in sorted(among):
            x = bound[i]
            entries = list(enumerate(x)) if isinstance(x, (list, tuple)) else [(None, x)]
            for entry, item in entries:
                if isinstance(item, Value):
                    edges.append(self.edge_of(item) if needed[i] else None)
                    positions.append((i, entry))
        return edges, positions

    def record(
        self,
        op: Operator,
        rules: Rules,
        bound: Sequence[Any],
        before: Sequence[Any],
        results: Any,
        needed: Sequence[bool],
    ) -> None:
        """An operator has run.

        Args:
            bound: its arguments; `before`: the same, frozen.
            results: a value, or a list or tuple of values.
            needed: what `needed` said.
        """
        flat: list[Value] = list(results) if isinstance(results, (list, tuple)) else [results]
        rule = rules.derivative
        among = _flowing(None if isinstance(results, list) else rule, 1, len(flat))
        carriers = [i for i, v in enumerate(flat) if i in among and is_differentiable(v.dtype)]
        if not carriers:
            return
        sequence = self.next_sequence()
        edges, positions = self._edges(rule, bound, needed, in_place=False)
        node = OpNode(sequence, op, rules, edges, positions, before, [v.geometry for v in flat])
        self._placed(node)
        node.kept = [_frozen(v) for v in flat]
        for i in carriers:
            self.set_history(flat[i], node, i)
            node.kept[i].grad_fn, node.kept[i].output_nr = node, i

    def begin_history(self, value: Value) -> None:
        """A value without a history is a leaf from here on."""
        value.grad_fn = InputNode(-1, value.geometry)

    def remember(self, value: Value, kept: Value) -> Value:
        """`kept`, frozen from `value`, with its history as it is now."""
        if value.base is None or value.view_version == value.storage.version:
            kept.grad_fn, kept.output_nr = value.grad_fn, value.output_nr
        return kept

    def begin_in_place(
        self,
        op: Operator,
        rules: Rules | None,
        bound: Sequence[Any],
        frozen: Callable[[Value], Value],
    ) -> OpNode | None:
        """Before an in-place change; what `rebase` takes after it, None if it needs no record."""
        target: Value = bound[0]
        rule = rules.derivative if rules is not None else None
        found = [False] * len(bound)
        for i in sorted({0, *_flowing(rule, 0, len(bound))}):
            if rules is None or rules.differentiable or i == 0:
                found[i] = any([self.edge_of(v) is not None for v in values_in(bound[i])])
        self._check_in_place(op, target, any(found[1:]))
        if not any(found) or not is_differentiable(target.dtype):
            return None
        sequence = self.next_sequence()
        edges, positions = self._edges(rule, bound, found, in_place=True)
        args = [map_values(x, frozen) for x in bound]
        args[0].kept = None  # eager execution keeps a copy of it
        node = OpNode(sequence, op, rules, edges, positions, args, [target.geometry])
        self._placed(node)
        return node

    def _check_in_place(self, op: Operator, target: Value, others: bool) -> None:
        """Refuses what eager execution refuses; the uncompiled program then raises its error."""
        if target.base is None:
            return
        if target.no_grad_view and (others or self.edge_of(target.base) is not None):
            raise UnsupportedGraph(
                f"{op.name}: got a view that was created in no_grad mode and is modified inplace with grad mode enabled",
                "put both the view and the change inside the no_grad block, or both outside",
            )

    def rebase(self, target: Value, node: OpNode) -> None:
        """After an in-place change: a view hands it over to its base."""
        node.kept = [_frozen(target)]
        base = target.base
        if base is None:
            self.set_history(target, node, 0)
            return
        steps = _relative_steps(target)
        copy = CopySlices(self.next_sequence(), base.geometry, steps, node, 0, self.edge_of(base))
        self._placed(copy)
        self.set_history(base, copy, 0)
        self.set_history(target, self._view_node(target, Edge(copy, 0)), 0)


def _frozen(value: Value) -> Value:
    """What `value` is right after it was made or written: its content is there without replay."""
    return kept_value(value, value.storage.current[value.steps])


def _relative_steps(view: Value) -> tuple[ViewStep, ...]:
    """The steps from the view's base to the view."""
    base = view.base
    assert base is not None
    n = len(base.steps)
    if view.steps[:n] != base.steps:
        raise UnsupportedGraph(
            "as_strided: got an in-place change of such a view of a detached view", "clone it first"
        )
    return view.steps[n:]


def _flowing(rule: Any, which: int, n: int) -> Sequence[int]:
    """The arguments (0) that a rule has gradients for, or the results (1) that gradients flow in from; all without a rule."""
    mark = getattr(rule, "differentiable", None)  # operators that refuse gradients have none
    found: Sequence[int] = range(n) if mark is None else mark[which]
    return found
