"""The callable of a compiled graph: what its program returns, turned into what the traced graph returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import argand_c10 as c10
from argand_aot.outputs import Mutation, OutputSpec, Step
from argand_autograd import _C
from argand_c10.records import Record, emit

__all__ = ["GraphPlan", "build_callable"]

# An input, "size", "stride" or "value", and a dimension.
SymbolSource = tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """What a call does besides running the forward program. All plain data.

    Attributes:
        n_inputs, n_values, n_kept: inputs; fresh results of the forward program; what it returns for backward alone, at the end.
        outputs: the results of the call.
        mutations: inputs to write back to.
        differentiable_inputs, differentiable_values: where gradients go, and where they come in.
        kept_inputs, kept_values: inputs and results of the forward program that backward reads.
        symbols: where the symbols come from that backward gets first.
        named_symbols: where every symbol comes from, for results that depend on sizes.
        silent: gradients must be off while the forward program runs, since inputs require grad.
        always: gradients are recorded though they are off at the call, since the graph turns them on.
        likely_pattern: which differentiable values gradients will arrive for, where sizes are symbolic: scalars, if there are
            any, else all.
        repeatable: the graph neither draws random numbers nor changes inputs, so that it may be run once more.
    """

    n_inputs: int
    n_values: int
    n_kept: int
    outputs: tuple[OutputSpec, ...]
    mutations: tuple[Mutation, ...] = ()
    differentiable_inputs: tuple[int, ...] = ()
    differentiable_values: tuple[int, ...] = ()
    kept_inputs: tuple[int, ...] = ()
    kept_values: tuple[int, ...] = ()
    symbols: tuple[SymbolSource, ...] = ()
    named_symbols: tuple[tuple[str, SymbolSource], ...] = ()
    silent: bool = False
    always: bool = False
    likely_pattern: tuple[int, ...] | None = None
    repeatable: bool = True

    def to_data(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> GraphPlan:
        """What `to_data` gave."""
        outputs = tuple(
            OutputSpec(
                o["kind"],
                o["index"],
                o["value"],
                tuple(Step(s["op"], tuple(s["args"]), s["recorded"]) for s in o["steps"]),
            )
            for o in data["outputs"]
        )
        mutations = tuple(
            Mutation(m["input"], m["value"], m["recorded"]) for m in data["mutations"]
        )
        return cls(
            n_inputs=data["n_inputs"],
            n_values=data["n_values"],
            n_kept=data["n_kept"],
            outputs=outputs,
            mutations=mutations,
            differentiable_inputs=tuple(data["differentiable_inputs"]),
            differentiable_values=tuple(data["differentiable_values"]),
            kept_inputs=tuple(data["kept_inputs"]),
            kept_values=tuple(data["kept_values"]),
            symbols=tuple((i, kind, d) for i, kind, d in data["symbols"]),
            named_symbols=tuple((n, (i, kind, d)) for n, (i, kind, d) in data["named_symbols"]),
            silent=data["silent"],
            always=data["always"],
            likely_pattern=None
            if data["likely_pattern"] is None
            else tuple(data["likely_pattern"]),
            repeatable=data["repeatable"],
        )


def build_callable(
    plan: GraphPlan,
    forward: Callable[..., Any],
    backward_for: Callable[[bytes], Callable[..., Any]],
    again: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]] | None,
    uncompiled: Callable[..., tuple[Any, ...]],
    name: str = "CompiledGraph",
) -> Callable[..., tuple[Any, ...]]:
    """A function of the graph's inputs that returns the tuple of its results.

    Args:
        forward: the forward program.
        backward_for: gives the backward program for a pattern of gradients, one byte a differentiable value.
        again: computes gradients with a history; None where that is not possible.
        uncompiled: runs the traced graph operator by operator.
    """
    call = forward
    if plan.silent or plan.mutations:
        call = _C.GraphFunction(
            f"{name}Backward",
            forward,
            backward_for,
            again,
            plan.n_inputs,
            plan.n_values,
            plan.n_kept,
            plan.differentiable_inputs,
            plan.differentiable_values,
            plan.kept_inputs,
            plan.kept_values,
            [(m.input, m.value, m.recorded) for m in plan.mutations],
            plan.symbols,
            plan.always,
        )
    fresh = [o.kind == "value" and o.index == i and not o.steps for i, o in enumerate(plan.outputs)]
    if not all(fresh) or len(fresh) != plan.n_values:
        call = _with_outputs(plan, call)
    recorded = [m.input for m in plan.mutations if m.recorded]
    return _without_views(recorded, call, uncompiled) if recorded else call


def _without_views(
    recorded: Sequence[int], call: Callable[..., Any], uncompiled: Callable[..., Any]
) -> Callable[..., Any]:
    """A change with a gradient of a view would have to change the history of what it is a view of: eager does."""

    def run(*inputs: Any) -> Any:
        for i in recorded:
            if inputs[i]._is_view():
                emit(
                    Record(
                        "fallback",
                        "AOT002",
                        f"a graph ran operator by operator: its input {i} is a view and is changed in place with gradients",
                        "clone the view before the compiled function changes it",
                    )
                )
                return uncompiled(*inputs)
        return call(*inputs)

    return run


def _with_outputs(plan: GraphPlan, call: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    # Views of other results come after those.
    makers = sorted(
        ((i, _maker(o)) for i, o in enumerate(plan.outputs)),
        key=lambda item: plan.outputs[item[0]].kind == "same",
    )
    sources = plan.named_symbols if _mentions_symbols(plan.outputs) else ()

    def run(*inputs: Any) -> tuple[Any, ...]:
        symbols = {name: _symbol(inputs, source) for name, source in sources}
        values = call(*inputs)
        results: list[Any] = [None] * len(makers)
        for i, make in makers:
            results[i] = make(values, inputs, results, symbols)
        return tuple(results)

    return run


def _symbol(inputs: Sequence[Any], source: SymbolSource) -> int:
    index, kind, dim = source
    x = inputs[index]
    if kind == "value":
        return int(x)
    return int(x.shape[dim] if kind == "size" else x.stride(dim))


def _mentions_symbols(outputs: Sequence[OutputSpec]) -> bool:
    def symbolic(x: Any) -> bool:
        if isinstance(x, (list, tuple)):
            return x[:1] in (("symbolic",), ["symbolic"]) or any(map(symbolic, x))
        return False

    return any(o.kind == "symbolic" or any(symbolic(s.args) for s in o.steps) for o in outputs)


Maker = Callable[[Any, Any, Any, dict[str, int]], Any]


def _maker(o: OutputSpec) -> Maker:
    index, value = o.index, o.value
    if o.kind == "constant":
        return lambda values, inputs, results, symbols: value
    if o.kind == "symbolic":
        code = compile(value, "<symbolic>", "eval")
        return lambda values, inputs, results, symbols: eval(
            code, {"__builtins__": _ALLOWED}, symbols
        )
    steps = [_replay(s) for s in o.steps]
    kind = o.kind

    def make(values: Any, inputs: Any, results: Any, symbols: dict[str, int]) -> Any:
        x = (inputs if kind == "input" else results if kind == "same" else values)[index]
        for step in steps:
            x = step(x, values, symbols)
        return x

    return make


_ALLOWED = {"min": min, "max": max, "abs": abs, "int": int, "float": float, "bool": bool}


def _replay(step: Step) -> Callable[[Any, Any, dict[str, int]], Any]:
    from argand_fx.schema import overload, schema_of  # few graphs return views

    op = overload(step.op)
    schema = schema_of(op)
    n = schema.positional - 1
    names = [a.name for a in schema.arguments[schema.positional :]]
    positional = [_argument(a) for a in step.args[:n]]
    keywords = {name: _argument(a) for name, a in zip(names, step.args[n:], strict=True)}

    def run(x: Any, values: Any, symbols: dict[str, int]) -> Any:
        args = [a(values, symbols) for a in positional]
        kwargs = {k: a(values, symbols) for k, a in keywords.items()}
        mode = _C.is_grad_enabled()
        if step.recorded == mode:
            return op(x, *args, **kwargs)
        _C._set_grad_enabled(step.recorded)
        try:
            return op(x, *args, **kwargs)
        finally:
            _C._set_grad_enabled(mode)

    return run


def _argument(x: Any) -> Callable[[Any, dict[str, int]], Any]:
    """Of the forward program's results and the symbols."""
    if isinstance(x, (list, tuple)):
        if len(x) == 2 and x[0] == "symbolic":
            code = compile(x[1], "<symbolic>", "eval")
            return lambda values, symbols: eval(code, {"__builtins__": _ALLOWED}, symbols)
        if len(x) == 2 and x[0] == "value":
            number = x[1]
            return lambda values, symbols: values[number]
        if len(x) == 2 and x[0] == "dtype":
            found = getattr(c10, x[1])
            return lambda values, symbols: found
        items = [_argument(item) for item in x]
        return lambda values, symbols: [item(values, symbols) for item in items]
    return lambda values, symbols: x
