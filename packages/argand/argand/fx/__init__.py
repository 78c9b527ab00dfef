"""Graphs of operator calls: `symbolic_trace`, `Graph`, `GraphModule`, `Interpreter`, passes."""

from __future__ import annotations

from argand_fx import *  # noqa: F403
from argand_fx import __all__ as __all__
