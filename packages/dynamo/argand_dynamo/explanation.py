"""What compiling a function comes to: graphs, breaks, guards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from argand_c10.records import Record, collect
from argand_dynamo.api import OptimizedModule, compile
from argand_dynamo.convert_frame import states
from argand_dynamo.guards import describe_guard
from argand_fx import GraphModule

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """The outcome of tracing calls of a function.

    Attributes:
        graphs: in the order in which they were compiled.
        records: graph breaks and fallbacks.
        guards: of all frames, in words.
        ops_per_graph: names of the operators of each graph.
    """

    graphs: list[GraphModule] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    guards: list[str] = field(default_factory=list)
    ops_per_graph: list[list[str]] = field(default_factory=list)

    @property
    def break_reasons(self) -> list[Record]:
        """The records of graph breaks."""
        return [record for record in self.records if record.kind == "graph_break"]

    @property
    def graph_count(self) -> int:
        """How many graphs there are."""
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        """How many breaks there are."""
        return len(self.break_reasons)

    @property
    def op_count(self) -> int:
        """How many operators all graphs call."""
        return sum(map(len, self.ops_per_graph))

    def __str__(self) -> str:
        lines = [
            f"Graphs: {self.graph_count}",
            f"Graph breaks: {self.graph_break_count}",
            f"Operators: {self.op_count}",
        ]
        lines += [
            f"Record {i + 1}:\n  {str(r).replace(chr(10), chr(10) + '  ')}"
            for i, r in enumerate(self.records)
        ]
        lines += [
            f"Operators {i + 1}: {', '.join(ops)}" for i, ops in enumerate(self.ops_per_graph)
        ]
        lines += ["Guards:", *(f"  {guard}" for guard in self.guards)]
        return "\n".join(lines)


def explain(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """Trace a call and say what comes of it.

    Args:
        fn: a function or Module.
        args, kwargs: of the call; without any, `explain(fn)` returns a function that takes them.

    Returns:
        An `Explanation`; print it.
    """
    if not args and not kwargs:
        return lambda *a, **k: _explain(fn, a, k)
    return _explain(fn, args, kwargs)


def _explain(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Explanation:
    found = Explanation()
    if isinstance(fn, OptimizedModule):
        fn = fn._orig_mod

    def keep(module: GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        found.graphs.append(module)
        names = [
            str(getattr(n.target, "name", None) or getattr(n.target, "__name__", n.target))
            for n in module.graph.nodes
            if n.op == "call_function"
        ]
        found.ops_per_graph.append(names)
        run: Callable[..., Any] = module.forward
        return run

    with collect() as records:
        compiled = compile(fn, backend=keep)
        compiled(*args, **kwargs)
        if records and records[-1].code == "FB0002":
            compiled(*args, **kwargs)  # caches are filled now
    found.records.extend(r for r in records if r.kind in ("graph_break", "fallback"))
    for (code, settings), state in list(states().items()):
        if settings.backend is keep:
            for made in state.compilations:
                found.guards.extend(describe_guard(guard, code) for guard in made.tree.guards)
    return found
