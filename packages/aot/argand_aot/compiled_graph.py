"""A compiled graph: its programs, its derivative, and its form on disk. Loading one imports nothing that compiles."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from argand_aot.runtime import GraphPlan, build_callable
from argand_aot.source import FORMAT, Source
from argand_aten import ops
from argand_autograd import early_gradients, enable_grad, grad
from argand_c10 import debug_trace, logs, metrics
from argand_c10.collection import gc_paused
from argand_c10.rules import graph_passes

if TYPE_CHECKING:
    from argand_aot.source import JointPass
    from argand_fx import GraphModule

__all__ = ["CompiledGraph", "Compiler", "finish_graph", "inputs_of", "load"]

# compiler(graph, inputs) -> a function of as many inputs that returns a flat tuple
Compiler = Callable[["GraphModule", Sequence[Any]], Callable[..., Any]]


class CompiledGraph:
    """A compiled graph, called with the traced graph's inputs.

    Attributes:
        backend: the name of the backend that it belongs to.
        call: the same as calling the object, faster.
        plan: what a call does besides running programs.
        forward: the forward program.
        backwards: the backward programs so far, by pattern of gradients; and whether they tell of gradients that are ready.
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
        self.backwards: dict[bytes, tuple[Callable[..., Any], bool]] = {}
        self._source = source
        self._backward_compiler = backward_compiler
        self._lock = threading.RLock()
        self._again_module: GraphModule | None = None
        again = self._again if plan.repeatable else None
        self.call = build_callable(plan, forward, self._backward_for, again, source.run_traced)

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
        needed = self.plan.differentiable_values or self.plan.mutations
        key = self._source.store(json.dumps(program, sort_keys=True)) if needed else None
        with self._lock:
            for pattern, (backward, early) in self.backwards.items():
                self._store_backward(pattern, early, backward)
        return {"format": FORMAT, "plan": self.plan.to_data(), "forward": program, "key": key}

    def _backward_for(self, pattern: bytes) -> Callable[..., Any]:
        """The backward program for this pattern of gradients, compiled when it is first needed."""
        with self._lock:
            found = self.backwards.get(pattern)
            if found is None:
                early = early_gradients.wanted()
                program = self._source.load_backward(pattern, early)
                if program is None:
                    program = self._compile_backward(pattern, early)
                    self._store_backward(pattern, early, program)
                found = self.backwards[pattern] = program, early
            return found[0]

    def prepare_backward(self) -> None:
        """Compile the backward program that is most likely wanted, so that the guards on sizes that it leaves are known."""
        if self.plan.likely_pattern is not None:
            self._backward_for(bytes(self.plan.likely_pattern))

    def _compile_backward(self, pattern: bytes, early: bool) -> Callable[..., Any]:
        from argand_fx.shapes import LateGuardError

        try:
            with gc_paused():
                return self._compile_pattern(pattern, early)
        except LateGuardError as error:
            raise RuntimeError(
                f"backward: gradients arrived for results {[i for i, b in enumerate(pattern) if b]} only, which needs a fact on "
                f"sizes that the compiled graph does not guard ({error}); compile the function with dynamic=False"
            ) from error

    def _compile_pattern(self, pattern: bytes, early: bool) -> Callable[..., Any]:
        with metrics.timed("derive"):
            graph = self._source.backward_graph(
                pattern, [name for name, _ in self.plan.named_symbols], early
            )
        file, line = self._source.location()
        with debug_trace.compilation("backward", file or "", line):
            finish_graph("backward", graph)
            return self._backward_compiler(graph, inputs_of(graph))

    def _store_backward(self, pattern: bytes, early: bool, program: Any) -> None:
        if hasattr(program, "serialize"):
            self._source.store_backward(pattern, early, program.serialize())

    def _again(self, inputs: tuple[Any, ...], grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gradients with a history: the traced graph is run, and differentiated by the engine.

        Raises:
            RuntimeError: where only views of what gradients arrive for are results, and the graph detaches something: the
                functional graph stands in for the traced one then, but has lost that.
        """
        outputs, wanted = self.plan.outputs, self.plan.differentiable_values
        places = {o.index: i for i, o in enumerate(outputs) if o.kind == "value" and not o.steps}
        if all(k in places for k, g in zip(wanted, grads, strict=True) if g is not None):
            run, numbers = self._source.run_traced, [places.get(k) for k in wanted]
        elif self._source.cuts_history():
            raise RuntimeError(
                "backward: got create_graph=True for a compiled function that returns views and detaches tensors or turns gradients "
                "off; return a clone of the views, or call the function without compiling it"
            )
        else:
            with self._lock:
                if self._again_module is None:
                    self._again_module = self._source.functional_graph()
            run, numbers = self._again_module, list(wanted)
        return differentiate_again(run, self.plan, inputs, numbers, grads)


def differentiate_again(
    run: Callable[..., tuple[Any, ...]],
    plan: GraphPlan,
    inputs: tuple[Any, ...],
    numbers: Sequence[int | None],
    grads: tuple[Any, ...],
) -> tuple[Any, ...]:
    """The gradients of a graph's inputs, computed by differentiable operators.

    Args:
        run: the graph.
        inputs: the inputs, with their histories.
        numbers: of the graph's results that gradients are of.
        grads: of those; None where nothing flowed in.
    """
    with enable_grad():
        given = list(inputs)
        wanted = [i for i in plan.differentiable_inputs if inputs[i].requires_grad]
        for i in wanted:
            given[i] = ops.alias(inputs[i])  # an input that is given twice has two gradients
        values = run(*given)
        pairs = [
            (values[k], g)
            for k, g in zip(numbers, grads, strict=True)
            if g is not None and k is not None and values[k].requires_grad
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


def inputs_of(module: GraphModule) -> list[Any]:
    """What the placeholders of a graph stand for."""
    return [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]


def finish_graph(which: str, module: GraphModule) -> None:
    """Let packages with operators complete a "forward" or "backward" graph, and tell logs and debug trace of it."""
    for run in graph_passes():
        run(module.graph)
    channel = logs.channel("aot_graphs")
    if channel.isEnabledFor(logging.INFO):
        channel.info("%s %s", which, module.graph)
    if debug_trace.enabled():
        debug_trace.add(f"{which}_graph", module)


def load(
    data: dict[str, Any],
    *,
    load_program: Callable[[dict[str, Any]], Callable[..., Any] | None],
    backward_compiler: Compiler,
    backend: str,
    joint_passes: Sequence[JointPass] = (),
) -> CompiledGraph | None:
    """The graph that `serialize` described; None if its forward program is gone, or it is of another version.

    Args:
        load_program: gives the program that its own `serialize` described, or None.
        backward_compiler: compiles backward graphs that are not found.
        joint_passes: those that the graph was compiled with.
    """
    program = load_program(data["forward"]) if data.get("format") == FORMAT else None
    if program is None:
        return None
    source = Source.stored(data["key"], load_program, joint_passes)
    return CompiledGraph(
        GraphPlan.from_data(data["plan"]), program, source, backward_compiler, backend
    )
