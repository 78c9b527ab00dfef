"""`while_loop` whose length tensors decide: one node, with the graphs of its functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from argand_dynamo import _C
from argand_dynamo.builtins import FUNCTION_HANDLERS
from argand_dynamo.control_flow import run_function
from argand_dynamo.control_graphs import build, check_alike, fill, flatten, get_graph, own_graph
from argand_dynamo.control_nodes import run_loop
from argand_dynamo.exceptions import break_trace
from argand_dynamo.variables.base import Variable
from argand_dynamo.variables.sequences import SequenceVariable
from argand_dynamo.variables.tensor import TensorVariable
from argand_fx import Node
from argand_fx.shapes import FakeTensor

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["register_while_loop"]


def register_while_loop(function: Callable[..., Any], *helpers: Callable[..., Any]) -> None:
    """Have calls `function(cond_fn, body_fn, carried_inputs)` traced as loops; those whose condition is known while tracing are unrolled.

    Args:
        function: the loop in Python.
        helpers: what it calls that runs as it is where the loop does.
    """
    signature = inspect.signature(function)

    def trace(tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable | None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return None
        cond_fn, body_fn, carried = map(tx.realize, bound.arguments.values())
        leaves: list[TensorVariable] = []
        structure = flatten(tx, carried, leaves) if isinstance(carried, SequenceVariable) else None
        if structure is None or not leaves or tx.exporting:
            return None
        return _Loop(tx, structure, [leaf.fake for leaf in leaves]).trace(cond_fn, body_fn)

    FUNCTION_HANDLERS[function] = trace
    # What a loop calls that is left to Python is compiled one by one.
    for own in (function, *helpers):
        _C.skip_code(own.__code__)


class _Loop:
    """One call: what it carries, by structure and tensors, and which of these carry gradients in some turn."""

    def __init__(self, tx: Tracer, structure: Any, carried: list[FakeTensor]) -> None:
        self.tx = tx
        self.structure = structure
        self.carried = carried
        self.flows = [fake.requires_grad for fake in carried]

    def trace(self, cond_fn: Variable, body_fn: Variable) -> Variable | None:
        """The loop's results; None if it is to be unrolled, or Python's to refuse."""
        tx = self.tx
        cond = self._graph(cond_fn, self._condition, "loop_condition")
        if cond is None:
            return None
        while True:
            flows = self.flows
            body = self._graph(body_fn, self._results, "loop_body")
            if self.flows == flows:
                break
        assert body is not None
        args = [cond[0], body[0], tuple(self.carried), cond[1], body[1]]
        found = fill(tx, run_loop, args, self.carried, self.flows)
        return build(self.structure, iter(found))

    def _graph(
        self, function: Variable, results: Callable[[Variable], list[FakeTensor] | None], name: str
    ) -> tuple[Node, tuple[FakeTensor, ...]] | None:
        tx = self.tx
        with own_graph(tx) as builder:
            pairs = zip(self.carried, self.flows, strict=True)
            entering = [builder.carry(tx, fake, flow) for fake, flow in pairs]
            given = build(self.structure, iter(entering))
            assert isinstance(given, SequenceVariable)
            found = results(run_function(tx, function, given.items, free=True)[0])
        return None if found is None else get_graph(tx, builder, found, name)

    def _condition(self, found: Variable) -> list[FakeTensor] | None:
        if not isinstance(found, TensorVariable) or found.fake.numel() != 1:
            return None
        return [found.fake]

    def _results(self, found: Variable) -> list[FakeTensor]:
        leaves: list[TensorVariable] = []
        if flatten(self.tx, found, leaves) != self.structure:
            raise break_trace("branches", "body_fn gives another structure than it takes")
        results = [leaf.fake for leaf in leaves]
        for before, after in zip(self.carried, results, strict=True):
            check_alike(before, after)
        self.flows = [a or b.requires_grad for a, b in zip(self.flows, results, strict=True)]
        return results
