"""The code generator under the name that programs know it by."""

from __future__ import annotations

from argand._inductor import config as config
from argand.compiler import cudagraph_mark_step_begin as cudagraph_mark_step_begin

__all__ = ["cudagraph_mark_step_begin"]
