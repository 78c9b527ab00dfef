"""Passes: functions that change a graph and say whether they did."""

from argand_fx.passes.runner import run

__all__ = ["run"]
