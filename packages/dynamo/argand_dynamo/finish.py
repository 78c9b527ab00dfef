"""From a finished trace to a frame plan and a graph."""

from __future__ import annotations

import types
from dataclasses import dataclass, replace
from typing import Any

from argand_aten._C import set_autocast_state
from argand_autograd._C import _set_grad_enabled
from argand_dynamo.frame_plan import Break, FramePlan, GraphCall, Return
from argand_dynamo.guards import (
    Guard,
    device_guards,
    shape_guard,
    state_guards,
    storage_guards,
    tensor_guard,
)
from argand_dynamo.plan_store import findable_code
from argand_dynamo.reconstruct import NotReconstructible, Reconstruction
from argand_dynamo.resume import needed_locals
from argand_dynamo.tracer import GraphInput, Tracer
from argand_dynamo.trust import is_trusted
from argand_dynamo.variables.base import Source, Variable
from argand_dynamo.variables.deques import DequeVariable
from argand_dynamo.variables.dicts import DictVariable, SetVariable
from argand_dynamo.variables.functions import CellVariable, GeneratorVariable
from argand_dynamo.variables.numpy_objects import shares_memory
from argand_dynamo.variables.objects import ObjectVariable
from argand_dynamo.variables.sequences import ListVariable
from argand_dynamo.variables.tensor import TensorVariable
from argand_fx import GraphModule
from argand_fx.shapes import FakeTensor, simplify_symbols
from argand_fx.symbolic import SymbolicValue

__all__ = ["Finished", "finish"]


@dataclass(frozen=True, slots=True)
class Finished:
    """What a trace has come to.

    Attributes:
        plan: without the graph's artifact.
        module: the graph, None if the frame needs none.
        inputs: the example inputs of the graph: fake tensors and symbols.
        grad_modes: where the graph switches the recording of gradients: whether it is on where the graph begins, and where the frame's
            `with` blocks have left it should the graph raise.
    """

    plan: FramePlan
    module: GraphModule | None
    inputs: tuple[Any, ...]
    grad_modes: tuple[bool, bool] | None


def finish(tx: Tracer, value: Variable | None) -> Finished:
    """The plan of a frame that returns `value`, or, for None, breaks before its current instruction.

    Raises:
        NotReconstructible: something that must outlive the graph cannot be made again.
    """
    _check_generators(tx)
    made = Reconstruction(tx)
    outcome: Return | Break
    if value is not None:
        outcome = Return(made.expression(value))
    else:
        outcome = _break(tx, made)
    _replay_changes(tx, made)
    _use_caches(tx, made)
    if tx.builder.grad_enabled != tx.entry_grad_mode:
        mode = ("const", tx.builder.grad_enabled)
        made.effects.append(("do", ("call", ("const", _set_grad_enabled), [mode], [])))
    if tx.autocast.state != tx.autocast.entry:
        state = ("const", tx.autocast.state)
        made.effects.append(("do", ("call", ("const", set_autocast_state), [state], [])))
    _check_sealed(tx, made)
    _check_arrays(tx)
    call, module, inputs, has_modes = _finish_graph(tx, made)
    # A resume function begins inside of blocks that the graph may leave; a block that is open at its end was entered in it.
    left = tx.entry_grad_mode or tx.builder.grad_enabled
    plan = FramePlan(
        name=tx.function.__qualname__,
        guards=tuple(_guards(tx)),
        outcome=outcome,
        graph=call,
        symbols=_symbols(tx),
        effects=tuple(made.effects),
        inlined=findable_code(_library_functions(tx)),
    )
    tx.builder.forget_storages()
    return Finished(plan, module, inputs, (tx.entry_grad_mode, left) if has_modes else None)


def _check_generators(tx: Tracer) -> None:
    """Python closes a generator that nothing holds any more: what `finally` and `with` around its `yield` do then is not traced."""
    for variable in tx.keep:
        if isinstance(variable, GeneratorVariable) and variable.awaits_cleanup():
            raise NotReconstructible(variable)


def _check_sealed(tx: Tracer, made: Reconstruction) -> None:
    """A tensor that stands for one in a cache is neither written to nor part of a result."""
    results = {id(fake.storage) for fake in made.outputs}
    for sealed in tx.sealed.values():
        memory = sealed.storage
        if memory is not None and (id(memory) in results or memory.version != sealed.version):
            raise NotReconstructible(sealed.variable)


def _check_arrays(tx: Tracer) -> None:
    """What was read of arrays while tracing is what they hold: no tensor on their memory is written to."""
    for array, memory, version in tx.lent:
        if memory.version != version:
            raise NotReconstructible(array)
    written = [g.variable.real for g in tx.inputs if _is_written(g.variable)] if tx.arrays else []
    for array, value in tx.arrays:
        if any(shares_memory(value, tensor) for tensor in written):
            raise NotReconstructible(array)


def _is_written(variable: Any) -> bool:
    return isinstance(variable, TensorVariable) and bool(variable.fake.storage.version)


def _library_functions(tx: Tracer) -> list[types.FunctionType]:
    """Functions that no guard looks at, as they stay what they are until the library is installed anew."""
    inlined = [variable.value for variable in tx.inlined.values()]
    return [f for f in inlined if isinstance(f, types.FunctionType) and is_trusted(f.__module__)]


def _break(tx: Tracer, made: Reconstruction) -> Break:
    frame = tx.root
    index = frame.current.index
    stack = []
    for item in frame.stack:
        stack.append(("null",) if item.describe() == "NULL" else made.expression(item))
    needed = needed_locals(frame.code, index)
    bound = [(name, made.expression(item)) for name, item in frame.locals.items() if name in needed]
    for name, cell in frame.cells.items():
        if name in frame.code.co_cellvars or cell.own_name is not None:
            _restore_cell(made, cell, name)
    return Break(index, tuple(stack), tuple(bound))


def _restore_cell(made: Reconstruction, cell: CellVariable, name: str) -> None:
    if cell.source is not None and not cell.stored:
        return
    if cell.own_name is None:
        return
    made.fill_cell(cell)


def _replay_changes(tx: Tracer, made: Reconstruction) -> None:
    done: set[int] = set()
    # Making values for one change may bring up objects, but changes nothing that existed before.
    for variable in list(tx.changed.values()):
        if id(variable) in done:
            continue
        done.add(id(variable))
        if isinstance(variable, CellVariable):
            made.fill_cell(variable)
            continue
        if variable.source is None:
            raise NotReconstructible(variable)
        target = ("source", variable.source)
        if isinstance(variable, ListVariable | DequeVariable):
            items = [made.expression(item) for item in variable.items]
            made.effects.append(("list_replace", target, items))
        elif isinstance(variable, DictVariable):
            pairs = [(made.expression(k), made.expression(v)) for k, v in variable.entries.values()]
            made.effects.append(("dict_replace", target, pairs))
        elif isinstance(variable, SetVariable):
            members = [made.expression(item) for item in variable.members.values()]
            made.effects.append(("set_replace", target, members))
        elif isinstance(variable, ObjectVariable):
            made.fill_object(variable, target)
        else:
            raise NotReconstructible(variable)
    for (_, name), (prefix, value) in tx.global_stores.items():
        expression = made.expression(value)
        if prefix == ():
            made.effects.append(("store_global", name, expression))
        elif prefix[-1] == ("attr", "__globals__"):
            made.effects.append(("store_item", ("source", prefix), ("const", name), expression))
        else:
            made.effects.append(("store_attr", ("source", prefix), name, expression))


def _use_caches(tx: Tracer, made: Reconstruction) -> None:
    """Call what keeps a limited number of results once more, where the last calls came in another order than the first: so it forgets what it shall."""
    for source in dict.fromkeys(path for path, _ in tx.cache_order):
        last = [key for key in tx.cache_order if key[0] == source]
        if last == [key for key in tx.cached_calls if key in tx.cache_order and key[0] == source]:
            continue
        for _, (steps, names) in last:
            given = [("const", s[1]) if s[0] == "const" else ("source", s[1]) for s in steps]
            by_place = len(given) - len(names)
            named = list(zip(names, given[by_place:], strict=True))
            call = ("call", ("source", source), given[:by_place], named)
            made.effects.append(("do", call))


def _finish_graph(
    tx: Tracer, made: Reconstruction
) -> tuple[GraphCall | None, GraphModule | None, tuple[Any, ...], bool]:
    graph = tx.graph
    tx.builder.output(tuple(made.outputs))
    has_modes = False
    for node in graph.nodes:
        if node.op == "call_function" and node.target is not None:
            has_modes = has_modes or getattr(node.target, "__name__", "") == "set_grad_mode"
    graph.eliminate_dead_code()
    simplify_symbols(graph, tx.dynamic.shape_env)
    works = any(
        node.op == "call_function" and getattr(node.target, "__name__", "") != "set_grad_mode"
        for node in graph.nodes
    )
    if not made.outputs and not works:
        return None, None, (), False
    kept = [entry for entry in tx.inputs if not _removable(entry)]
    for entry in tx.inputs:
        if _removable(entry):
            graph.erase_node(entry.node)
    lines: dict[tuple[str, int, str], None] = {}
    for node in graph.nodes:
        location = node.meta.get("location")
        if location is not None and node.op == "call_function":
            lines[location] = None
    module = GraphModule(dict(tx.builder.constants), graph)
    call = GraphCall(tuple([("source", entry.source) for entry in kept]), lines=tuple(lines))
    return call, module, tuple([entry.value for entry in kept]), has_modes


def _removable(entry: GraphInput) -> bool:
    """Whether the graph does without an input: nothing uses it, and it binds no symbol."""
    if entry.node.users or isinstance(entry.value, SymbolicValue):
        return False
    fake = entry.value
    return all(type(n) is int for n in (*fake.shape, *fake.strides))


def _symbols(tx: Tracer) -> dict[str, tuple[str, Source, int]]:
    return {
        name: (kind, source, dim)
        for name, (source, kind, dim) in tx.dynamic.shape_env.sources.items()
    }


def _guards(tx: Tracer) -> list[Guard]:
    guards = list(state_guards())
    guards[0] = Guard((), "GRAD_MODE", tx.entry_grad_mode)
    guards += device_guards(_devices(tx))
    for source, kind, value in tx.guards.values():
        guards.append(Guard(source, kind, value))
    for cls, value in tx.class_guards:
        path = tx.class_source(cls)
        if path is not None:
            guards.append(Guard(path, "CLASS_ATTR", value))
    tensors = [e for e in tx.inputs if isinstance(e.value, FakeTensor)]
    for entry in tensors:
        guards.append(tensor_guard(entry.source, entry.variable.real, entry.value))
    pairs = [(entry.source, entry.variable.real) for entry in tensors]
    if len(pairs) > 1:
        if any(entry.value.storage.version for entry in tensors):
            guards += storage_guards(pairs)
        else:
            guards.append(Guard((), "DISTINCT", tuple([source for source, _ in pairs])))
    for a, b in dict.fromkeys(tx.distinct_pairs):
        guards.append(Guard((), "DISTINCT", (a, b)))
    guards += _container_guards(tx)
    guards += _shape_guards(tx, tensors)
    return guards


def _devices(tx: Tracer) -> set[Any]:
    """Where the graph's tensors are."""
    values = (node.meta.get("val") for node in tx.graph.nodes)
    return {value.device for value in values if isinstance(value, FakeTensor)}


def _container_guards(tx: Tracer) -> list[Guard]:
    """A change of one object must not be a change of another that the trace took for a different one."""
    changed = {type(v) for v in tx.changed.values() if not isinstance(v, CellVariable)}
    if not changed:
        return []
    found = []
    for kind in changed:
        same = [v.source for v in tx.known.values() if type(v) is kind and v.source is not None]
        same = [source for source in same if source is not None]
        if len(same) > 1:
            found.append(Guard((), "DISTINCT", tuple(same)))
    return found


def with_backend_guards(tx: Tracer, plan: FramePlan) -> FramePlan:
    """The plan with the guards on sizes that the backend left while it compiled; from now on there can be no more."""
    env = tx.dynamic.shape_env
    env.freeze()
    tensors = [e for e in tx.inputs if isinstance(e.value, FakeTensor)]
    kept = [guard for guard in plan.guards if guard[1] != "SHAPE"]
    return replace(plan, guards=(*kept, *_shape_guards(tx, tensors)))


def _shape_guards(tx: Tracer, tensors: list[GraphInput]) -> list[Guard]:
    env = tx.dynamic.shape_env
    expressions = [guard.expr for guard in env.guards]
    bindings = dict(env.sources)
    own = set(bindings.values())
    for entry in tensors:
        fake, contiguous = entry.value, entry.variable.real.is_contiguous()
        given = [n if type(n) is int else 2 for n in fake.shape]  # symbols are at least 2
        for d, stride in enumerate(fake.strides):
            binding = (entry.source, "stride", d)
            if type(stride) is int or binding in own:
                continue
            if contiguous and given[d] != 1 and 0 not in given:
                continue  # being contiguous says it
            name = f"t{len(bindings)}"
            bindings[name] = binding
            expressions.append(("==", name, stride.expr))
        if fake.storage.offset_read:
            name = f"t{len(bindings)}"
            bindings[name] = (entry.source, "offset", 0)
            expressions.append(("==", name, fake.offset))
    if not expressions:
        return []
    return [shape_guard(expressions, bindings)]
