"""`autograd.Function`: forward and backward are traced into graphs of their own, joined by one `apply_function` node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from argand_autograd import Function
from argand_autograd.graph_ops import apply_function
from argand_dynamo.builtins import FUNCTION_HANDLERS
from argand_dynamo.exceptions import break_trace
from argand_dynamo.variables.base import MethodVariable, Variable
from argand_dynamo.variables.classes import ClassVariable
from argand_dynamo.variables.constant import Constant, SymIntVariable
from argand_dynamo.variables.functions import FunctionVariable
from argand_dynamo.variables.objects import DELETED, ObjectVariable
from argand_dynamo.variables.sequences import SequenceVariable, TupleVariable
from argand_dynamo.variables.tensor import TensorVariable
from argand_fx import Graph, GraphModule
from argand_fx.shapes import GraphBuilder

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["ContextVariable"]

_METHODS = frozenset(
    {
        "save_for_backward",
        "mark_non_differentiable",
        "set_materialize_grads",
        "mark_dirty",
        "save_for_forward",
    }
)


class ContextVariable(ObjectVariable):
    """The `ctx` of forward and backward."""

    __slots__ = ("fixed", "needs", "saved")

    def __init__(self, cls: type, needs: list[bool]) -> None:
        super().__init__(cls)
        self.needs = needs
        self.saved: list[Variable] = []
        # Results that carry no gradient.
        self.fixed: list[Variable] = []

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in ("saved_tensors", "saved_variables"):
            return TupleVariable(list(self.saved))
        if name in _METHODS:
            return MethodVariable(self, name)
        if name in self.overlay and self.overlay[name] is not DELETED:
            return self.overlay[name]
        if name == "needs_input_grad":
            return TupleVariable([Constant(need) for need in self.needs])
        return super().getattr(tx, name)

    def setattr(self, tx: Tracer, name: str, value: Variable) -> None:
        self.overlay[name] = value

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name == "save_for_backward":
            self.saved = list(args)
        elif name == "mark_non_differentiable":
            self.fixed = list(args)
        elif name == "set_materialize_grads":
            if not tx.truth(args[0]):
                raise break_trace("custom_function", "set_materialize_grads(False)")
        else:
            raise break_trace("custom_function", f"ctx.{name}()")
        return Constant(None)


@contextmanager
def _own_graph(tx: Tracer) -> Iterator[GraphBuilder]:
    """Operators go to a graph of their own, without gradients."""
    outer = tx.builder
    inner = GraphBuilder(Graph(), outer.shape_env)
    inner.grad_enabled = False
    inner.autocast = outer.autocast
    changes = tx.changes
    tx.builder = inner
    try:
        yield inner
    finally:
        tx.builder = outer
    if changes != tx.changes:
        raise break_trace("custom_function", "forward or backward changes objects other than ctx")


def _placeholder(tx: Tracer, builder: GraphBuilder, name: str, like: Any) -> TensorVariable:
    fake = builder.fake(like.shape, like.dtype, strides=like.strides, device=like.device)
    builder.placeholder(name, fake)
    made = TensorVariable(fake)
    tx.tensors[fake] = made
    return made


def _apply(tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    """Function.apply(cls, *args)"""
    cls = args[0]
    if not isinstance(cls, ClassVariable) or kwargs:
        raise break_trace("custom_function", "apply() with keyword arguments")
    given = args[1:]
    tensors = [a for a in given if isinstance(a, TensorVariable)]
    needs = [isinstance(a, TensorVariable) and bool(a.fake.requires_grad) for a in given]
    kind: Any = cls.value
    context = ContextVariable(kind._context_type, needs)
    if not (tx.builder.grad_enabled and any(needs)):
        return _run_without_gradients(tx, cls, context, given)
    with _own_graph(tx) as builder:
        inner = {id(a): _placeholder(tx, builder, f"x{i}", a.fake) for i, a in enumerate(tensors)}
        inputs = list(inner.values())
        found = _forward(tx, cls, context, [inner.get(id(a), a) for a in given])
        results = _results(tx, found, inputs)
        kept = _kept(tx, context)
        builder.output(tuple([v.fake for v in (*results, *kept)]))
    forward = GraphModule(dict(builder.constants), builder.graph, f"{cls.value.__name__}Forward")
    differentiable = tuple(
        v.fake.dtype.is_floating_point and v not in context.fixed for v in results
    )
    backward = _backward_graph(tx, cls, context, given, kept, results)
    return _join(
        tx, forward, backward, differentiable, tensors, results, isinstance(found, TupleVariable)
    )


def _run_without_gradients(
    tx: Tracer, cls: ClassVariable, context: ContextVariable, given: list[Variable]
) -> Variable:
    enabled, tx.builder.grad_enabled = tx.builder.grad_enabled, False
    try:
        found = _forward(tx, cls, context, given)
    finally:
        tx.builder.grad_enabled = enabled
    results = found.items if isinstance(found, TupleVariable) else [found]
    if any(result is a for result in results for a in given):
        raise break_trace("custom_function", "forward returns one of its arguments")
    return found


def _forward(
    tx: Tracer, cls: ClassVariable, context: ContextVariable, given: list[Variable]
) -> Variable:
    forward = cls.getattr(tx, "forward")
    kind: Any = cls.value
    if not kind._uses_setup_context:
        return tx.realize(forward.call(tx, [context, *given], {}))
    found = tx.realize(forward.call(tx, list(given), {}))
    cls.getattr(tx, "setup_context").call(tx, [context, TupleVariable(list(given)), found], {})
    return found


def _results(tx: Tracer, found: Variable, inputs: list[TensorVariable]) -> list[TensorVariable]:
    results = tx.unpack(found) if isinstance(found, TupleVariable) else [found]
    memory = {id(v.fake.storage) for v in inputs}
    made: list[TensorVariable] = []
    for result in map(tx.realize, results):
        if not isinstance(result, TensorVariable):
            raise break_trace("custom_function", "a result of forward that is no tensor")
        if id(result.fake.storage) in memory:
            raise break_trace(
                "custom_function", "a result of forward that is an argument or a view of one"
            )
        made.append(result)
    if any(v.fake.storage.version for v in inputs):
        raise break_trace("custom_function", "forward changes an argument in place")
    return made


def _kept(tx: Tracer, context: ContextVariable) -> list[TensorVariable]:
    """The tensors that backward reads, each once."""
    held = [v for v in (*context.saved, *context.overlay.values()) if isinstance(v, TensorVariable)]
    for value in context.overlay.values():
        if not isinstance(value, TensorVariable):
            _check_held(tx, value)
    return list(dict.fromkeys(held))


def _check_held(tx: Tracer, value: Variable) -> None:
    if isinstance(value, SequenceVariable):
        for item in map(tx.realize, value.items):
            _check_held(tx, item)
    elif not isinstance(value, Constant | SymIntVariable | ObjectVariable | FunctionVariable):
        raise break_trace("custom_function", f"ctx holds {value.describe()}")


def _backward_graph(
    tx: Tracer,
    cls: ClassVariable,
    context: ContextVariable,
    given: list[Variable],
    kept: list[TensorVariable],
    results: list[TensorVariable],
) -> GraphModule:
    with _own_graph(tx) as builder, tx.autocast.suspended():
        inner = {id(v): _placeholder(tx, builder, f"kept{i}", v.fake) for i, v in enumerate(kept)}
        grads: list[Variable] = []
        for i, v in enumerate(results):
            fake = builder.fake(v.fake.shape, v.fake.dtype, device=v.fake.device)
            builder.placeholder(f"grad{i}", fake)
            grads.append(TensorVariable(fake))
            tx.tensors[fake] = grads[-1]  # type: ignore[assignment]
        later = ContextVariable(context.cls, context.needs)
        later.saved = [inner.get(id(v), v) for v in context.saved]
        later.overlay = {k: inner.get(id(v), v) for k, v in context.overlay.items()}
        found = tx.realize(cls.getattr(tx, "backward").call(tx, [later, *grads], {}))
        derived = [
            tx.realize(v)
            for v in (tx.unpack(found) if isinstance(found, TupleVariable) else [found])
        ]
        if len(derived) != len(given):
            raise break_trace(
                "custom_function",
                f"backward returns {len(derived)} gradients for {len(given)} arguments",
            )
        builder.output(
            tuple(
                [
                    _gradient(v)
                    for v, a in zip(derived, given, strict=True)
                    if isinstance(a, TensorVariable)
                ]
            )
        )
    return GraphModule(dict(builder.constants), builder.graph, f"{cls.value.__name__}Backward")


def _gradient(variable: Variable) -> Any:
    if isinstance(variable, Constant) and variable.value is None:
        return None
    if not isinstance(variable, TensorVariable):
        raise break_trace("custom_function", "a gradient that is no tensor")
    return variable.fake


def _join(
    tx: Tracer,
    forward: GraphModule,
    backward: GraphModule,
    differentiable: tuple[bool, ...],
    tensors: list[TensorVariable],
    results: list[TensorVariable],
    several: bool,
) -> Variable:
    builder = tx.builder
    graph = builder.graph
    assert graph is not None
    nodes = []
    number = sum(name.startswith("function_") for name in builder.constants)
    for kind, module in (("forward", forward), ("backward", backward)):
        name = f"function_{kind}{number // 2}"
        builder.constants[name] = module  # type: ignore[assignment]
        node = graph.create_node("get_attr", name)
        node.meta["val"] = module
        nodes.append(node)
    fakes = tuple(
        builder.fake(
            v.fake.shape,
            v.fake.dtype,
            strides=v.fake.strides,
            device=v.fake.device,
            requires_grad=flows,
        )
        for v, flows in zip(results, differentiable, strict=True)
    )
    arguments = [*nodes, len(results), differentiable, True, *[t.fake for t in tensors]]
    made = tx.operation(builder.create, apply_function, arguments, {}, fakes)
    found = [tx.from_raw(fake) for fake in made]
    return TupleVariable(found) if several else found[0]


FUNCTION_HANDLERS[Function.__dict__["apply"].__func__] = _apply
