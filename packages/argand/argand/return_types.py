"""The named tuples of operators with several results: that of `argand.max(x, 0)` is `return_types.max`."""

from __future__ import annotations

from typing import Any

from argand_aten import ops
from argand_aten._statistics import Histogram as histogramdd

__all__ = ["histogramdd"]


def __getattr__(name: str) -> Any:
    for made in getattr(getattr(ops, name, None), "result_types", ()):
        if made is not None:
            return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
