"""The backend that runs graphs operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from argand_fx import GraphModule

__all__ = ["eager"]


def eager(module: GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """The graph's own generated code."""
    function: Callable[..., Any] = module.forward
    return function
