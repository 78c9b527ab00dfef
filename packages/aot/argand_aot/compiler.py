"""The ahead-of-time compiler: traced graph -> functional forward and backward graphs -> programs -> one callable."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from argand_autograd import enable_grad, grad
from argand_c10 import logs, metrics
from argand_c10.errors import UnsupportedError
from argand_c10.records import Record, emit
from argand_fx import GraphModule
from argand_fx.bindings import symbol_bindings
from argand_fx.shapes import FakeTensor

from argand_aot.joint import Joint, build_joint
from argand_aot.partition import Partition, extract_backward, extract_forward, partition
from argand_aot.runtime import GraphPlan, SymbolSource, build_callable
from argand_aot.values import UnsupportedGraph

__all__ = ["CompiledGraph", "EagerGraph", "compile"]

Compiler = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]


class EagerGraph:
    """A graph that could not be compiled: it runs operator by operator."""

    backend = "eager"

    def __init__(self, module: GraphModule) -> None:
        self.module = module
        self.call = module.forward

    def __call__(self, *inputs: Any) -> Any:
        return self.module(*inputs)


class CompiledGraph:
    """A compiled graph, called with the traced graph's inputs.

    Attributes:
        call: the same as calling the object, faster.
        plan: what a call does besides running programs.
        forward: the forward program.
        key: names the graph in caches.
    """

    backend = "aot"

    def __init__(
        self,
        joint: Joint,
        key: str,
        forward_compiler: Compiler,
        backward_compiler: Compiler,
    ) -> None:
        self.key = key
        self._joint = joint
        self._backward_compiler = backward_compiler
        self._lock = threading.RLock()
        self._again_module: GraphModule | None = None
        self._chosen: Partition | None = None
        self.backwards: dict[bytes, Callable[..., Any]] = {}
        if joint.differentiable_inputs and joint.differentiable_results:
            everything = joint.backward([True] * len(joint.differentiable_results))
            _log_joint(joint)
            self._chosen = partition(joint, everything)
        graph = extract_forward(joint, self._chosen)
        self.plan = _plan(joint, self._chosen)
        _log("forward", graph)
        metrics.count("graphs")
        self.forward = forward_compiler(graph, _inputs_of(graph))
        repeatable = not joint.random and not joint.mutations
        self.call = build_callable(
            self.plan, self.forward, self._backward_for, self._again if repeatable else None
        )

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        return self.call(*inputs)

    def _backward_for(self, pattern: bytes) -> Callable[..., Any]:
        """The backward program for this pattern of gradients, compiled when it is first needed."""
        with self._lock:
            found = self.backwards.get(pattern)
            if found is None:
                with metrics.timed("backward compilation"):
                    found = self._compile_backward(pattern)
                self.backwards[pattern] = found
            return found

    def _compile_backward(self, pattern: bytes) -> Callable[..., Any]:
        assert self._chosen is not None
        derived = self._joint.backward([bool(b) for b in pattern])
        graph, symbols = extract_backward(self._joint, self._chosen, derived)
        _log("backward", graph)
        program = self._backward_compiler(graph, _inputs_of(graph))
        return _select_symbols(program, symbols, [name for name, _ in self.plan.named_symbols])

    def _again(self, inputs: tuple[Any, ...], grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gradients with a history: the functional graph is run and differentiated by the engine."""
        with self._lock:
            if self._again_module is None:
                self._again_module = extract_forward(self._joint, None)
        return differentiate_again(self._again_module, self.plan, inputs, grads)


def differentiate_again(
    module: GraphModule, plan: GraphPlan, inputs: tuple[Any, ...], grads: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The gradients of a functional graph's inputs, computed by differentiable operators.

    Args:
        inputs: the inputs, with their histories.
        grads: of the differentiable results; None where nothing flowed in.
    """
    from argand_aten import ops

    with enable_grad():
        given = list(inputs)
        wanted = [i for i in plan.differentiable_inputs if inputs[i].requires_grad]
        for i in wanted:
            given[i] = ops.alias(inputs[i])  # an input that is given twice has two gradients
        values = module(*given)
        pairs = [
            (values[k], g)
            for k, g in zip(plan.differentiable_values, grads, strict=True)
            if g is not None and values[k].requires_grad
        ]
        found = grad(
            [v for v, _ in pairs],
            [given[i] for i in wanted],
            [g for _, g in pairs],
            create_graph=True,
            allow_unused=True,
        )
    by_input = dict(zip(wanted, found, strict=True))
    return tuple(by_input.get(i) for i in plan.differentiable_inputs)


def _select_symbols(
    program: Callable[..., Any], needed: Sequence[str], given: Sequence[str]
) -> Callable[..., Any]:
    """A backward program gets all symbols; it takes those that it needs."""
    if list(needed) == list(given):
        return program
    n, picked = len(given), [list(given).index(name) for name in needed]

    def run(*args: Any) -> Any:
        return program(*[args[i] for i in picked], *args[n:])

    return run


def _plan(joint: Joint, chosen: Partition | None) -> GraphPlan:
    numbers = {n: i for i, n in enumerate(joint.placeholders)}
    sources: list[tuple[str, SymbolSource]] = []
    for name, (node, (kind, dim)) in symbol_bindings(joint.placeholders).items():
        sources.append((name, (numbers[node], kind, dim)))
    sources.sort(key=lambda item: (len(item[0]), item[0]))
    return GraphPlan(
        n_inputs=len(joint.placeholders),
        n_values=len(joint.results) - len(joint.mutations),
        n_kept=len(chosen.values) if chosen is not None else 0,
        outputs=tuple(joint.outputs),
        mutations=tuple(joint.mutations),
        differentiable_inputs=tuple(joint.differentiable_inputs) if chosen is not None else (),
        differentiable_values=tuple(joint.differentiable_results) if chosen is not None else (),
        kept_inputs=tuple(numbers[n] for n in chosen.inputs) if chosen is not None else (),
        symbols=tuple(source for _, source in sources) if chosen is not None else (),
        named_symbols=tuple(sources),
    )


def _inputs_of(module: GraphModule) -> list[Any]:
    return [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]


def _log_joint(joint: Joint) -> None:
    channel = logs.channel("joint_graph")
    if channel.isEnabledFor(20):
        channel.info("%s", joint.graph)


def _log(which: str, module: GraphModule) -> None:
    channel = logs.channel("aot_graphs")
    if channel.isEnabledFor(20):
        channel.info("%s %s", which, module.graph)


def compile(
    module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    forward_compiler: Compiler,
    backward_compiler: Compiler | None = None,
) -> CompiledGraph | EagerGraph:
    """Compile a traced graph and its derivative.

    Args:
        module: a graph of operators; nodes carry their results in meta["val"].
        example_inputs: a fake tensor, symbolic number or constant per placeholder.
        forward_compiler: `forward_compiler(graph, inputs)` -> a function of as many inputs that returns a flat tuple.
        backward_compiler: the same for backward graphs, called at the first backward; by default `forward_compiler`.

    Returns:
        A callable that returns the tuple of the graph's results. What cannot be compiled runs operator by operator, with
        one record.
    """
    try:
        with metrics.timed("aot"):
            joint = build_joint(module, example_inputs)
            if joint.differentiable_inputs and joint.differentiable_results:
                joint.backward([True] * len(joint.differentiable_results))
    except (UnsupportedGraph, UnsupportedError) as error:
        location = joint_location(module)
        emit(
            Record(
                "fallback",
                "AOT001",
                f"the graph runs operator by operator: {error}",
                getattr(error, "fix", "") or "see the message",
                *location,
            )
        )
        return EagerGraph(module)
    key = hashlib.sha256(_description(module, example_inputs).encode()).hexdigest()
    return CompiledGraph(joint, key, forward_compiler, backward_compiler or forward_compiler)


def joint_location(module: GraphModule) -> tuple[str | None, int]:
    """The user's first line in the graph."""
    for node in module.graph.nodes:
        place = node.meta.get("location")
        if place is not None:
            return place[0], place[1]
    return None, 0


def _description(module: GraphModule, example_inputs: Sequence[Any]) -> str:
    """Text that is the same for graphs that compile to the same."""
    parts = [str(module.graph)]
    for x in example_inputs:
        if isinstance(x, FakeTensor):
            parts.append(f"{x.dtype} {list(x.shape)} {list(x.stride())} {x.storage_offset()} {x.device} {x.requires_grad}")
        else:
            parts.append(str(x))
    return "\n".join(parts)


