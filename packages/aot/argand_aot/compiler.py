"""The ahead-of-time compiler: traced graph -> functional forward and backward graphs -> programs -> one callable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from argand_aot.compiled_graph import CompiledGraph, Compiler, finish_graph, inputs_of
from argand_aot.decompose.table import Decomposition
from argand_aot.joint import Joint, build_joint
from argand_aot.partition import Partition, extract_forward
from argand_aot.runtime import GraphPlan, SymbolSource
from argand_aot.source import Source
from argand_aot.values import UnsupportedGraph
from argand_autograd.graph_ops import keep_grad_mode
from argand_c10 import metrics
from argand_c10.collection import gc_paused
from argand_c10.errors import UnsupportedError
from argand_c10.records import Record, emit
from argand_fx import GraphModule
from argand_fx.bindings import symbol_bindings

if TYPE_CHECKING:
    from argand_aot.source import JointPass

__all__ = ["EagerGraph", "compile"]


class EagerGraph:
    """A graph that could not be compiled: it runs operator by operator. Called as a `CompiledGraph`."""

    def __init__(self, module: GraphModule, backend: str) -> None:
        self.module = module
        self.backend = backend
        self.call = keep_grad_mode(module.forward)

    def serialize(self) -> dict[str, Any]:
        """Data that `load` finds nothing for: the next process tries to compile again."""
        return {"format": None}

    def __call__(self, *inputs: Any) -> Any:
        return self.call(*inputs)


def _plan(joint: Joint, chosen: Partition | None) -> GraphPlan:
    numbers = {n: i for i, n in enumerate(joint.placeholders)}
    sources: list[tuple[str, SymbolSource]] = []
    for name, (node, (kind, dim)) in symbol_bindings(joint.placeholders).items():
        sources.append((name, (numbers[node], kind, dim)))
    sources.sort(key=lambda item: (len(item[0]), item[0]))
    extra = chosen.extra if chosen is not None else ()
    places = {n: i for i, n in enumerate((*joint.results, *extra))}
    return GraphPlan(
        n_inputs=len(joint.placeholders),
        n_values=len(joint.results) - len(joint.mutations),
        n_kept=len(extra),
        outputs=tuple(joint.outputs),
        mutations=tuple(joint.mutations),
        differentiable_inputs=tuple(joint.differentiable_inputs) if chosen is not None else (),
        differentiable_values=tuple(joint.differentiable_results) if chosen is not None else (),
        kept_inputs=tuple(numbers[n] for n in chosen.inputs) if chosen is not None else (),
        kept_values=tuple(places[n] for n in chosen.values) if chosen is not None else (),
        symbols=tuple(source for _, source in sources) if chosen is not None else (),
        named_symbols=tuple(sources),
        silent=bool(joint.differentiable_inputs),
        always=not joint.entry_grad_mode,
        likely_pattern=tuple(map(int, joint.likely_mask()))
        if sources and chosen is not None
        else None,
        repeatable=not joint.effects and not joint.mutations,
    )


def _decomposing(compiler: Compiler, table: Mapping[str, Decomposition]) -> Compiler:
    def run(module: GraphModule, inputs: Sequence[Any]) -> Any:
        from argand_aot.decompose import decompose

        with metrics.timed("decompose"):
            module = decompose(module, table)
        return compiler(module, inputs_of(module))

    return run


def compile(
    module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    forward_compiler: Compiler,
    backward_compiler: Compiler | None = None,
    backend: str = "aot",
    decompositions: Mapping[str, Decomposition] | None = None,
    joint_passes: Sequence[JointPass] = (),
) -> CompiledGraph | EagerGraph:
    """Compile a traced graph and its derivative.

    Args:
        module: a graph of operators; nodes carry their results in meta["val"].
        example_inputs: a fake tensor, symbolic number or constant per placeholder.
        forward_compiler: `forward_compiler(graph, inputs)` -> a function of as many inputs that returns a flat tuple.
        backward_compiler: the same for backward graphs, called at the first backward; by default `forward_compiler`.
        backend: the name of the backend that the result belongs to.
        decompositions: what the compilers shall get instead of operators, by overload name (`argand_aot.decompose`); none by
            default.
        joint_passes: each rewrites a joint graph in place, backward graph included, before it is partitioned; `load` needs
            the same ones.

    Returns:
        A callable that returns the tuple of the graph's results. What cannot be compiled runs operator by operator, with
        one record.
    """
    if decompositions:
        forward_compiler = _decomposing(forward_compiler, decompositions)
        if backward_compiler is not None:
            backward_compiler = _decomposing(backward_compiler, decompositions)
    try:
        with gc_paused():
            with metrics.timed("functionalize"):
                joint = build_joint(module, example_inputs)
            source = Source(module, example_inputs, joint, joint_passes)
            joint, chosen = source.partitioned()
            graph = extract_forward(joint, chosen)
    except (UnsupportedGraph, UnsupportedError) as error:
        message = f"the graph runs operator by operator: {error}"
        fix = getattr(error, "fix", "") or "see the message"
        emit(Record("fallback", "AOT001", message, fix, *Source(module).location()))
        return EagerGraph(module, backend)
    finish_graph("forward", graph)
    program = forward_compiler(graph, inputs_of(graph))
    plan = _plan(joint, chosen)
    made = CompiledGraph(plan, program, source, backward_compiler or forward_compiler, backend)
    made.prepare_backward()
    return made
