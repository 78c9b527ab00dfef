"""Conditions that compiled programs check while they run."""

from __future__ import annotations

import builtins
from typing import Any

from argand.library import custom_op
from argand_c10 import Tensor

__all__ = ["_check_in_graph"]


def _check(condition: Tensor, error: str, message: str) -> None:
    if not condition.all():
        raise getattr(builtins, error)(message)


# _check_in_graph(condition, error, message) raises the builtin exception `error` unless every element of `condition` holds.
_check_in_graph: Any = custom_op("argand::check_in_graph", _check, mutates_args=())
_check_in_graph.register_fake(lambda condition, error, message: None)
