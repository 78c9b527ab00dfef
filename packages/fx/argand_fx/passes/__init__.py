"""Passes: functions `pass(gm) -> changed` that change a GraphModule's graph in place, and their runner."""

from argand_fx.passes.common_subexpressions import eliminate_common_subexpressions
from argand_fx.passes.dead_code import eliminate_dead_code
from argand_fx.passes.runner import run

__all__ = ["eliminate_common_subexpressions", "eliminate_dead_code", "run"]
