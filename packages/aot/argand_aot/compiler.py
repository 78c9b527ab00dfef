"""The ahead-of-time compiler: traced graph -> functional forward and backward graphs -> programs -> one callable."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from argand_autograd import enable_grad, grad
from argand_c10 import debug_trace, logs, metrics
from argand_c10.errors import UnsupportedError
from argand_c10.records import Record, emit
from argand_fx import GraphModule
from argand_fx.bindings import symbol_bindings

from argand_aot.joint import Joint, build_joint
from argand_aot.partition import Partition, extract_backward, extract_forward
from argand_aot.runtime import GraphPlan, SymbolSource, build_callable
from argand_aot.source import Source
from argand_aot.values import UnsupportedGraph

__all__ = ["CompiledGraph", "EagerGraph", "compile", "load"]

Compiler = Callable[[GraphModule, Sequence[Any]], Callable[..., Any]]


class EagerGraph:
    """A graph that could not be compiled: it runs operator by operator. Called as a `CompiledGraph`."""

    def __init__(self, module: GraphModule, backend: str) -> None:
        self.module = module
        self.backend = backend
        self.call = module.forward

    def serialize(self) -> dict[str, Any]:
        """Data that `load` finds nothing for: the next process tries to compile again."""
        return {"plan": None}

    def __call__(self, *inputs: Any) -> Any:
        return self.module(*inputs)


class CompiledGraph:
    """A compiled graph, called with the traced graph's inputs.

    Attributes:
        backend: the name of the backend that it belongs to.
        call: the same as calling the object, faster.
        plan: what a call does besides running programs.
        forward: the forward program.
        backwards: the backward programs so far, by pattern of gradients.
    """

    def __init__(
        self,
        plan: GraphPlan,
        forward: Callable[..., Any],
        source: Source,
        backward_compiler: Compiler,
        backend: str,
    ) -> None:
        self.plan = plan
        self.forward = forward
        self.backend = backend
        self.backwards: dict[bytes, Callable[..., Any]] = {}
        self._source = source
        self._backward_compiler = backward_compiler
        self._lock = threading.RLock()
        self._again_module: GraphModule | None = None
        again = self._again if plan.repeatable else None
        self.call = build_callable(plan, forward, self._backward_for, again)

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        return self.call(*inputs)

    def serialize(self) -> dict[str, Any]:
        """Plain data from which `load` makes an equal graph in another process.

        Raises:
            TypeError: if the programs of its compiler cannot be kept.
        """
        if not hasattr(self.forward, "serialize"):
            raise TypeError(
                f"serialize: got programs of {self.backend!r}, which cannot be kept, expected ones with serialize()"
            )
        program = self.forward.serialize()
        key = self._source.store(json.dumps(program, sort_keys=True)) if self.plan.differentiable_values else None
        with self._lock:
            for pattern, backward in self.backwards.items():
                self._store_backward(pattern, backward)
        return {"plan": self.plan.to_data(), "forward": program, "key": key}

    def _backward_for(self, pattern: bytes) -> Callable[..., Any]:
        """The backward program for this pattern of gradients, compiled when it is first needed."""
        with self._lock:
            found = self.backwards.get(pattern)
            if found is None:
                found = self._source.load_backward(pattern)
                if found is None:
                    found = self._compile_backward(pattern)
                    self._store_backward(pattern, found)
                self.backwards[pattern] = found
            return found

    def _compile_backward(self, pattern: bytes) -> Callable[..., Any]:
        joint, chosen = self._source.partitioned()
        assert chosen is not None
        with metrics.timed("derive"):
            derived = joint.backward([bool(b) for b in pattern])
            names = [name for name, _ in self.plan.named_symbols]
            graph = extract_backward(joint, chosen, derived, names)
        file, line = self._source.location()
        with debug_trace.compilation("backward", file or "", line):
            _show("backward", graph)
            metrics.count("graphs")
            return self._backward_compiler(graph, _inputs_of(graph))

    def _store_backward(self, pattern: bytes, program: Any) -> None:
        if hasattr(program, "serialize"):
            self._source.store_backward(pattern, program.serialize())

    def _again(self, inputs: tuple[Any, ...], grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gradients with a history: the functional graph is run and differentiated by the engine."""
        with self._lock:
            if self._again_module is None:
                self._again_module = extract_forward(self._source.partitioned()[0], None)
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
        silent=bool(joint.differentiable_inputs),
        repeatable=not joint.random and not joint.mutations,
    )


def _inputs_of(module: GraphModule) -> list[Any]:
    return [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]


def _show(which: str, module: GraphModule) -> None:
    channel = logs.channel("aot_graphs")
    if channel.isEnabledFor(logging.INFO):
        channel.info("%s %s", which, module.graph)
    if debug_trace.enabled():
        debug_trace.add(f"{which}_graph", module)


def compile(
    module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    forward_compiler: Compiler,
    backward_compiler: Compiler | None = None,
    backend: str = "aot",
) -> CompiledGraph | EagerGraph:
    """Compile a traced graph and its derivative.

    Args:
        module: a graph of operators; nodes carry their results in meta["val"].
        example_inputs: a fake tensor, symbolic number or constant per placeholder.
        forward_compiler: `forward_compiler(graph, inputs)` -> a function of as many inputs that returns a flat tuple.
        backward_compiler: the same for backward graphs, called at the first backward; by default `forward_compiler`.
        backend: the name of the backend that the result belongs to.

    Returns:
        A callable that returns the tuple of the graph's results. What cannot be compiled runs operator by operator, with
        one record.
    """
    try:
        with metrics.timed("functionalize"):
            joint = build_joint(module, example_inputs)
        source = Source(module, example_inputs, joint)
        joint, chosen = source.partitioned()
    except (UnsupportedGraph, UnsupportedError) as error:
        message = f"the graph runs operator by operator: {error}"
        fix = getattr(error, "fix", "") or "see the message"
        emit(Record("fallback", "AOT001", message, fix, *Source(module).location()))
        return EagerGraph(module, backend)
    graph = extract_forward(joint, chosen)
    _show("forward", graph)
    metrics.count("graphs")
    program = forward_compiler(graph, _inputs_of(graph))
    plan = _plan(joint, chosen)
    return CompiledGraph(plan, program, source, backward_compiler or forward_compiler, backend)


def load(
    data: dict[str, Any],
    *,
    load_program: Callable[[dict[str, Any]], Callable[..., Any] | None],
    backward_compiler: Compiler,
    backend: str,
) -> CompiledGraph | None:
    """The graph that `serialize` described; None if its forward program is gone.

    Args:
        load_program: gives the program that its own `serialize` described, or None.
        backward_compiler: compiles backward graphs that are not found.
    """
    program = None if data["plan"] is None else load_program(data["forward"])
    if program is None:
        return None
    source = Source.stored(data["key"], load_program)
    return CompiledGraph(GraphPlan.from_data(data["plan"]), program, source, backward_compiler, backend)
