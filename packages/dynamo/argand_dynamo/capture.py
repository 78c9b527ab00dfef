"""One frame traced as a whole, for packages that keep the graph instead of running it."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argand_autograd import is_grad_enabled, set_grad_enabled
from argand_c10 import metrics
from argand_dynamo.compile_frame import fullgraph_error, not_reconstructible
from argand_dynamo.dynamic import DynamicShapes
from argand_dynamo.exceptions import BreakTrace
from argand_dynamo.finish import finish
from argand_dynamo.frame_plan import FramePlan
from argand_dynamo.reconstruct import NotReconstructible
from argand_dynamo.tracer import GraphInput, Tracer
from argand_fx import GraphModule

__all__ = ["Capture", "capture"]


@dataclass(frozen=True, slots=True)
class Capture:
    """A frame that is one graph.

    Attributes:
        plan: guards, what is returned, and side effects.
        module: the graph; None if the frame does nothing on tensors.
        inputs: the graph's inputs, in its order: their sources, fakes and real tensors.
        dynamic: as given, with the symbols that were made.
    """

    plan: FramePlan
    module: GraphModule | None
    inputs: tuple[GraphInput, ...]
    dynamic: DynamicShapes


def capture(function: types.FunctionType, values: Sequence[Any], dynamic: DynamicShapes) -> Capture:
    """Trace a call of `function` with these values in its argument slots; nothing is compiled or kept.

    Args:
        function: a plain function.
        values: one for each of its parameters, in the order of `co_varnames`.
        dynamic: decides which sizes are symbolic.

    Raises:
        GraphBreak: the frame is not one graph.
    """
    grad_mode = is_grad_enabled()
    tx = Tracer(function, dynamic)
    tx.exporting = True
    try:
        value = tx.trace(list(values))
        finished = finish(tx, value)
    except BreakTrace as stop:
        raise fullgraph_error(stop, function) from stop.original
    except NotReconstructible as missing:
        raise fullgraph_error(not_reconstructible(missing, tx), function) from None
    finally:
        if is_grad_enabled() != grad_mode:
            set_grad_enabled(grad_mode)
    metrics.count("traces")
    by_source = {entry.source: entry for entry in tx.inputs}
    call = finished.plan.graph
    kept = tuple(by_source[e[1]] for e in call.inputs) if call is not None else ()
    return Capture(finished.plan, finished.module, kept, dynamic)
