"""From a traced graph to a functional one with its history, from which backward graphs are derived."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argand_aot import custom_function, inner_gradients, view_steps
from argand_aot.derive import derive
from argand_aot.emitter import Emitter, stays
from argand_aot.functionalize import Functionalizer, input_value
from argand_aot.outputs import Mutation, OutputSpec, Step
from argand_aot.tape import InputNode, Tape
from argand_aot.values import Edge, UnsupportedGraph, Value, ViewStep, fresh_value, is_dense
from argand_autograd import graph_ops
from argand_c10 import Operator, Tensor
from argand_fx import Graph, GraphModule, Node
from argand_fx.schema import overload
from argand_fx.shapes import FakeTensor, GraphBuilder
from argand_fx.symbolic import SymbolicValue

__all__ = ["Backward", "Joint", "build_joint"]


@dataclass(frozen=True, slots=True)
class Backward:
    """A derived backward graph inside of the joint graph.

    Attributes:
        tangents: the inputs for the gradients of the outputs that have one, in order.
        grads: per differentiable input its gradient's node, or None.
        whole: whether gradients pass every differentiable result, so that no other mask reads other values of the forward graph.
    """

    tangents: list[Node]
    grads: list[Node | None]
    whole: bool


class Joint:
    """The functional form of a traced graph.

    Attributes:
        graph: the functional graph; backward graphs are added to it.
        root: tensors that its `get_attr` nodes name.
        placeholders: its inputs, as the traced graph's.
        results: nodes of the forward results: fresh outputs first, then the new contents of changed inputs.
        outputs: the traced graph's results in terms of these.
        mutations: inputs that are changed.
        differentiable_inputs: numbers of the inputs that require grad.
        differentiable_results: numbers of `results` that gradients come in for.
        forward, result_set: the nodes of the functional graph without derivatives, and those of `results`.
        entry_grad_mode: are gradients recorded where the graph begins.
        leaves: inputs that are leaves which require grad.
        effects: operators of the traced program that stay whoever uses their results, in order: they draw random numbers or have none.
    """

    def __init__(self, shape_env: Any, stops: bool = False) -> None:
        self.graph = Graph()
        self.root: dict[str, Any] = {}
        self.builder = GraphBuilder(self.graph, shape_env)
        self.emitter = Emitter(self.builder)
        self.tape = Tape()
        self.functionalizer = Functionalizer(self.emitter, self.tape, stops=stops)
        self.placeholders: list[Node] = []
        self.inputs: list[Any] = []
        self.results: list[Node] = []
        self.outputs: list[OutputSpec] = []
        self.mutations: list[Mutation] = []
        self.differentiable_inputs: list[int] = []
        self.differentiable_results: list[int] = []
        self.effects: list[Node] = []
        self.entry_grad_mode = True
        self.leaves: set[Node] = set()
        self.forward: frozenset[Node] = frozenset()
        self.result_set: frozenset[Node] = frozenset()
        self._edges: list[Edge] = []
        self._backwards: dict[tuple[bool, ...], Backward] = {}

    @property
    def has_backward(self) -> bool:
        """Can gradients flow from a result to an input?"""
        return bool(self.differentiable_inputs and self.differentiable_results)

    def backward(self, mask: Sequence[bool]) -> Backward:
        """The backward graph for the case that gradients arrive for the differentiable results with True in `mask`."""
        key = tuple(mask)
        if key not in self._backwards:
            self._backwards[key] = self._derive(key)
        return self._backwards[key]

    def likely_mask(self) -> tuple[bool, ...]:
        """The differentiable results that gradients will arrive for, most likely: scalars, if there are any, else all."""
        scalars = [not self.results[k].meta["val"].shape for k in self.differentiable_results]
        return tuple([s or not any(scalars) for s in scalars])

    def widest(self) -> Backward:
        """A backward graph that reads what those of all masks read: the likely one, if gradients reach every result in it."""
        likely = self.backward(self.likely_mask())
        return likely if likely.whole else self.backward([True] * len(self.differentiable_results))

    def replace(self, old: Node, new: Node) -> None:
        """Let `new` take the place of `old` everywhere but in backward graphs that are derived afterwards."""
        old.replace_all_uses_with(new)
        self.results = [new if n is old else n for n in self.results]
        self.result_set = frozenset(self.results)
        for backward in self._backwards.values():
            backward.grads[:] = [new if n is old else n for n in backward.grads]

    def note_forward(self) -> None:
        """Count what the results are computed from among the nodes of the functional graph."""
        stack, found = list(self.results), set(self.forward)
        while stack:
            node = stack.pop()
            if node not in found:
                found.add(node)
                stack.extend(node.all_input_nodes)
        self.forward = frozenset(found)

    def _derive(self, mask: tuple[bool, ...]) -> Backward:
        pure = Functionalizer(self.emitter)
        pure.deriving = True
        chosen = [k for k, wanted in enumerate(mask) if wanted]
        tangents = []
        first = next(n for n in self.graph.nodes if n.op != "placeholder")
        self.builder.location = self.builder.stack = None
        with self.graph.inserting_before(first):
            for k in chosen:
                fake: FakeTensor = self.results[self.differentiable_results[k]].meta["val"]
                tangents.append(self._input(f"tangent_{k}", fake))
        found, delivered = derive(
            pure, [self._edges[k] for k in chosen], [fresh_value(t) for t in tangents]
        )
        self.builder.location = self.builder.stack = None
        grads = [
            pure.read(found[i]).node if i in found else None for i in self.differentiable_inputs
        ]
        reached = [(edge.node, edge.number) in delivered for edge in self._edges]
        return Backward([t.node for t in tangents], grads, all(reached))

    def _input(self, name: str, like: Any) -> Any:
        fake = FakeTensor(like.shape, like.stride(), like.storage_offset(), like.dtype, like.device)
        return self.builder.placeholder(name, fake)


def build_joint(module: GraphModule, example_inputs: Sequence[Any], stops: bool = False) -> Joint:
    """Functionalize a traced graph.

    Args:
        module: the graph; nodes carry their results in meta["val"].
        example_inputs: a fake tensor, symbolic number or constant per placeholder.
        stops: whether `detach` stays in the graph where gradients stop, for a graph that is differentiated later.

    Raises:
        UnsupportedGraph: if it cannot be compiled ahead of time.
    """
    joint = Joint(_shape_env(example_inputs), stops)
    _Walk(joint, module).run(example_inputs)
    joint.effects = [
        n for n in joint.graph.nodes if isinstance(n.target, Operator) and stays(n.target)
    ]
    joint.forward = frozenset(joint.graph.nodes)
    joint.result_set = frozenset(joint.results)
    return joint


def _shape_env(values: Sequence[Any]) -> Any:
    for v in values:
        builder = getattr(v, "builder", None)
        if builder is not None and builder.shape_env is not None:
            return builder.shape_env
        env = getattr(v, "env", None)
        if env is not None:
            return env
    return None


def _entry_grad_mode(graph: Graph) -> bool:
    """Are gradients on where the graph begins: before a node that changes it, it was the other way."""
    for node in graph.nodes:
        if node.op == "call_function":
            if node.target is graph_ops.set_grad_mode:
                return not node.args[0]
            return bool(node.meta.get("grad_enabled", True))
    return True


class _Walk:
    """Runs the nodes of a traced graph through a functionalizer."""

    def __init__(self, joint: Joint, module: GraphModule) -> None:
        self.joint = joint
        self.module = module
        self.env: dict[Node, Any] = {}
        self.grad_mode = True
        self.roots: list[Value] = []
        self.owners: dict[Any, int] = {}  # inputs that share memory: the first one
        self.shared: set[int] = set()
        self.constants: list[Value] = []

    def run(self, example_inputs: Sequence[Any]) -> None:
        given = iter(example_inputs)
        self.joint.entry_grad_mode = _entry_grad_mode(self.module.graph)
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node, next(given, None))
            elif node.op == "output":
                _Finish(self).run(node)
            else:
                self._locate(node)
                self.env[node] = self._node(node)

    def _locate(self, node: Node) -> None:
        meta, joint = node.meta, self.joint
        joint.builder.location = meta.get("location")
        joint.builder.stack = meta.get("stack")
        joint.tape.place = (joint.builder.location, joint.builder.stack)
        joint.functionalizer.recording = bool(meta.get("grad_enabled", self.grad_mode))

    def _placeholder(self, node: Node, example: Any) -> None:
        joint, index = self.joint, len(self.joint.placeholders)
        given = node.meta.get("val", example)
        given = example if given is None else given
        if not isinstance(given, FakeTensor):
            joint.builder.placeholder(node.name, given)
            joint.placeholders.append(joint.graph._root._prev)
            joint.inputs.append(given)
            self.env[node] = given
            return
        fake = joint._input(node.name, given)
        joint.placeholders.append(fake.node)
        value = input_value(fake, index)
        joint.inputs.append(value)
        self.env[node] = value
        self.roots.append(value)
        owner = self.owners.setdefault(given.storage, index)
        if owner != index:
            self.shared |= {owner, index}
        if given.requires_grad:
            joint.tape.add_input(value, index)
            joint.differentiable_inputs.append(index)
            if given.is_leaf:
                joint.leaves.add(joint.placeholders[index])

    def _node(self, node: Node) -> Any:
        if node.op == "get_attr":
            return self._attribute(node)
        if node.op != "call_function":
            raise UnsupportedGraph(
                f"{node.name}: got a {node.op} node, expected calls of operators"
            )
        args, kwargs = self._values(node.args), self._values(node.kwargs)
        target = node.target
        if isinstance(target, Operator):
            return self._operator(node, target, args, kwargs)
        if target is operator.getitem:
            return args[0][args[1]]
        if target is graph_ops.set_grad_mode:
            self.grad_mode = bool(args[0])
            return None
        if target is graph_ops.require_gradients:
            return self.joint.tape.begin_history(args[0])
        if target is graph_ops.take_gradients:
            return inner_gradients.take_gradients(
                self.joint.functionalizer, node.meta["val"], *args
            )
        if target is graph_ops.apply_function:
            return custom_function.apply(self.joint.functionalizer, args, kwargs)
        if not any(isinstance(x, (Value, FakeTensor)) for x in args) and not kwargs:
            return target(*args)  # arithmetic on sizes
        raise UnsupportedGraph(f"{node.name}: got a call of {target!r}, expected an operator")

    def _operator(self, node: Node, op: Operator, args: Any, kwargs: dict[str, Any]) -> Any:
        bound = custom_function.bound_arguments(op, args, kwargs)
        return self.joint.functionalizer.run(op, bound, node.meta.get("val"))

    def _values(self, x: Any) -> Any:
        if isinstance(x, Node):
            return self.env[x]
        if isinstance(x, dict):
            return {k: self._values(v) for k, v in x.items()}
        if isinstance(x, list):
            return [self._values(v) for v in x]
        if isinstance(x, tuple):
            return tuple(self._values(v) for v in x)
        return x

    def _attribute(self, node: Node) -> Any:
        found: Any = self.module
        for name in node.target.split("."):
            found = getattr(found, name)
        if not isinstance(found, Tensor):
            return found
        if found.requires_grad:
            raise UnsupportedGraph(
                f"{node.target}: got a constant tensor that requires grad, expected it as an input of the graph"
            )
        joint = self.joint
        name = node.target.replace(".", "_")
        joint.root[name] = found
        inner = joint.graph.create_node("get_attr", name)
        like = node.meta.get("val", found)
        fake = FakeTensor(like.shape, like.stride(), like.storage_offset(), like.dtype, like.device)
        fake.node, fake.builder = inner, joint.builder
        inner.meta["val"] = fake
        value = fresh_value(fake)
        self.constants.append(value)
        return value


class _Finish:
    """Finds out what the results of the graph are, and adds what makes them so."""

    def __init__(self, walk: _Walk) -> None:
        self.walk = walk
        self.joint = walk.joint
        self.f = walk.joint.functionalizer
        self.taken: set[Any] = {self.f.read(v).storage for v in (*self._start(), *walk.constants)}
        self.slots: dict[Any, int] = {}

    def _start(self) -> list[Value]:
        """The inputs as they came."""
        return [
            fresh_value(n.meta["val"])
            for n in self.joint.placeholders
            if isinstance(n.meta["val"], FakeTensor)
        ]

    def run(self, node: Node) -> None:
        joint, f = self.joint, self.f
        joint.builder.location = joint.builder.stack = None
        f.recording = False
        items = self.walk._values(node.args[0])
        items = list(items) if isinstance(items, (list, tuple)) else [items]
        views: dict[Any, set[int]] = {}
        first: dict[int, int] = {}
        for number, x in enumerate(items):
            if isinstance(x, Value):
                views.setdefault(x.storage, set()).add(id(x))
                first.setdefault(id(x), number)
        for number, x in enumerate(items):
            if isinstance(x, Value) and first[id(x)] != number:
                joint.outputs.append(OutputSpec("same", first[id(x)]))
                continue
            if isinstance(x, Value) and (seen := self._view_of_result(x, first)) is not None:
                joint.outputs.append(seen)
                continue
            joint.outputs.append(self._output(x, len(views.get(getattr(x, "storage", None), ()))))
        self._mutations()

    def _view_of_result(self, x: Value, first: dict[int, int]) -> OutputSpec | None:
        """For a view of a detached tensor that is a result too, whose number `first` has: another one would not be its base."""
        base = x.base
        if base is None or id(base) not in first or not base.steps:
            return None
        n = len(base.steps)
        if x.steps[:n] != base.steps or self.joint.tape.edge_of(x) is not None:
            return None
        return OutputSpec("same", first[id(base)], steps=self._plain_steps(x.steps[n:]))

    def _output(self, x: Any, sharing: int) -> OutputSpec:
        if isinstance(x, SymbolicValue):
            return OutputSpec("symbolic", value=str(x))
        if not isinstance(x, Value):
            return OutputSpec("constant", value=x)
        storage = x.storage
        if (
            any(view_steps.detaches(s.op) for s in x.steps)
            and self.joint.tape.edge_of(x) is not None
        ):
            raise UnsupportedGraph(
                "got a result that was detached and then changed in place by something with gradients",
                "clone it after detach()",
            )
        if storage.input is not None:
            return OutputSpec("input", storage.input, steps=self._plain_steps(x.steps))
        if storage.root in self.walk.constants:
            raise UnsupportedGraph("got a result that is a constant of the graph")
        root = storage.root
        if x is root or (sharing == 1 and is_dense(x.geometry)):
            return OutputSpec("value", self._slot(x))
        return OutputSpec("value", self._slot(root), steps=self._plain_steps(x.steps))

    def _plain_steps(self, steps: Sequence[ViewStep]) -> tuple[Step, ...]:
        return tuple(
            Step(s.op.name, tuple(self._plain(a) for a in s.args), s.recorded) for s in steps
        )

    def _plain(self, x: Any) -> Any:
        if isinstance(x, SymbolicValue):
            return ("symbolic", str(x))
        if isinstance(x, Value):
            return ("value", self._slot(x))
        if isinstance(x, (list, tuple)):
            return [self._plain(item) for item in x]
        if x is None or isinstance(x, (bool, int, float, str)):
            return x
        return ("dtype", x.name)

    def _slot(self, x: Value) -> int:
        """The number of the forward result that holds `x`."""
        found = self.slots.get(id(x))
        if found is None:
            found = self.slots[id(x)] = self._add_result(x, self.joint.tape.edge_of(x))
        return found

    def _add_result(self, x: Value, edge: Edge | None) -> int:
        joint, emit = self.joint, self.joint.emitter
        content = self.f.read(x)
        content = emit.as_result(content, x.geometry)
        made = content.node
        if content.storage in self.taken or (made and made.op in ("placeholder", "get_attr")):
            content = emit.new(overload("clone"), [content, None])
        self.taken.add(content.storage)
        number = len(joint.results)
        joint.results.append(content.node)
        if edge is not None:
            joint.differentiable_results.append(number)
            joint._edges.append(edge)
        return number

    def _mutations(self) -> None:
        joint = self.joint
        for value in self.walk.constants:
            if value.storage.version:
                raise UnsupportedGraph("got an in-place change of a constant of the graph")
        for value in self.walk.roots:
            storage = value.storage
            index = storage.input
            if not storage.version or index is None:
                continue
            if index in self.walk.shared:
                raise UnsupportedGraph(
                    f"got an in-place change of input {index}, which shares memory with another input",
                    "pass the tensor once, and make its views inside of the compiled function",
                )
            edge = joint.tape.edge_of(value)
            recorded = edge is not None and not isinstance(edge.node, InputNode)
            if not recorded and self.f.read(value).node is joint.placeholders[index]:
                # Written with its own elements: its version counts that.
                joint.mutations.append(Mutation(index, len(joint.results), False))
                joint.results.append(joint.placeholders[index])
                continue
            number = self._add_result(value, edge if recorded else None)
            joint.mutations.append(Mutation(index, number, recorded))
