"""Transforms of functions (`argand_autograd.func`): the gradients that they take are nodes of the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import argand_autograd
from argand_autograd import _C as autograd_native
from argand_autograd import differentiate, func
from argand_autograd.graph_ops import require_gradients, take_gradients
from argand_dynamo.builtins import FUNCTION_HANDLERS, handles
from argand_dynamo.exceptions import break_trace
from argand_dynamo.variables.base import Variable
from argand_dynamo.variables.constant import Constant
from argand_fx import Node, has_side_effect
from argand_fx.schema import schema_of
from argand_fx.shapes import FakeTensor

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

has_side_effect(require_gradients)


def _change_depth(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    tx.transforms += tx.raw(args[0])
    return Constant(tx.transforms)


def _begin_history(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    fake = tx.raw(args[0])
    tx.operation(tx.builder.create, require_gradients, (fake,), {}, None)
    fake.node.meta["val"] = fake.snapshot()
    fake.requires_grad = fake._leaf = True
    return args[0]


def _as_argument(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    leaf = _begin_history(tx, [tx.from_raw(tx.operate("detach", tx.raw(args[0])))], {})
    return tx.from_raw(tx.operate("alias", tx.raw(leaf)))  # type: ignore[no-any-return]


def _reaches_beyond(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    """Whether a tensor that requires grad, and came into the graph, is in the history."""
    memory: set[Any] = set()
    seen: set[Node] = set()
    waiting = [tx.raw(args[0]).node]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        fakes = [x for x in _flat(node.meta.get("val")) if x.requires_grad]
        if node.op == "placeholder" and fakes:
            return Constant(True)
        if not fakes and node.op != "call_function":
            continue
        waiting += [n for n in node.all_input_nodes if _carries(n)]
        for storage in {x.storage for x in fakes} - memory:
            memory.add(storage)
            waiting += _writers(tx, storage)
    return Constant(False)


def _carries(node: Node) -> bool:
    return any(x.requires_grad for x in _flat(node.meta.get("val")))


def _flat(value: Any) -> list[FakeTensor]:
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in _flat(part)]
    return [value] if isinstance(value, FakeTensor) else []


def _writers(tx: Tracer, storage: Any) -> list[Node]:
    """The nodes that change the tensors of a storage in place."""
    found = []
    for node in tx.graph.nodes:
        schema = schema_of(node.target) if hasattr(node.target, "schema") else None
        for i in () if schema is None else schema.written:
            given = node.args[i] if i < len(node.args) else None
            if isinstance(given, Node) and any(
                x.storage is storage for x in _flat(given.meta.get("val"))
            ):
                found.append(node)
    return found


@handles(autograd_native._run_backward)
def _run_backward(
    tx: Tracer,
    outputs: Variable,
    gradients: Variable,
    retain: Variable,
    create: Variable,
    inputs: Variable,
    accumulate: Variable,
) -> Variable:
    if not tx.transforms or tx.truth(accumulate):
        raise break_trace("backward", "backward() or grad()")
    ys, vectors, xs = (
        [tx.raw(x) for x in tx.unpack(part)] for part in (outputs, gradients, inputs)
    )
    for y, v in zip(ys, vectors, strict=True):
        if not y.requires_grad or (v is None and y.numel() != 1):
            raise break_trace("backward", "grad() of a tensor that it refuses")
        if v is not None and tuple(v.shape) != tuple(y.shape):
            raise break_trace("backward", "grad() with a gradient of another shape")
    create_graph = tx.truth(create)
    shapes = [tx.operate("empty_like", x) for x in xs]
    fakes = tuple(
        [
            tx.builder.fake(
                x.shape, x.dtype, strides=x.strides, device=x.device, requires_grad=create_graph
            )
            for x in shapes
        ]
    )
    made = tx.operation(
        tx.builder.create, take_gradients, (ys, vectors, xs, create_graph), {}, fakes
    )
    return tx.make_tuple([tx.from_raw(fake) for fake in made])


def _backward(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    raise break_trace("backward", "backward() or grad()")


def _grad(tx: Any, args: list[Variable], kwargs: dict[str, Variable]) -> Variable | None:
    """grad() that a transform calls is traced."""
    return None if tx.transforms else _backward(tx, args, kwargs)


FUNCTION_HANDLERS[argand_autograd.backward] = _backward
FUNCTION_HANDLERS[argand_autograd.grad] = _grad
FUNCTION_HANDLERS[differentiate.begin_history] = _begin_history
FUNCTION_HANDLERS[func.as_argument] = _as_argument
FUNCTION_HANDLERS[func.change_depth] = _change_depth
FUNCTION_HANDLERS[func.reaches_beyond_arguments] = _reaches_beyond
