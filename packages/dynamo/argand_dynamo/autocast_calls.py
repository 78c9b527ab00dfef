"""Calls of compiled graphs with autocast on: the casts are in the graph. A warm start imports this and not the tracer's part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from argand_aten import _C as aten_native
from argand_autograd.amp import without_regions
from argand_dynamo import _C
from argand_dynamo.frame_plan import FramePlan

__all__ = ["called_outside", "outside_of_regions"]


def called_outside(graph: Callable[..., Any] | None, plan: FramePlan) -> Callable[..., Any] | None:
    """The frame's graph; for frames that are called with autocast on, one that is run without it."""
    modes = next(value for _, kind, value in plan.guards if kind == "MODES")
    if graph is None or modes is None or without_regions(modes[2]) == modes[2]:
        return graph
    return outside_of_regions(graph)


def outside_of_regions(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, run without autocast: the casts are in its graph."""

    def run(*args: Any, **kwargs: Any) -> Any:
        state = aten_native.autocast_state()
        aten_native.set_autocast_state(without_regions(state))
        try:
            return function(*args, **kwargs)
        finally:
            aten_native.set_autocast_state(state)

    _C.skip_code(run.__code__)
    return run
