"""Operators with a lowering of their own, written by hand; each family is a module that registers here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argand_c10 import Operator
    from argand_inductor.lowering.graph import Lowering

# (ctx, arguments, their fakes, the result's fake) -> the result's TensorRef (tuple of such), or None to call the operator.
Lowered = Callable[["Lowering", dict[str, Any], dict[str, Any], Any], Any]
_LOWERINGS: dict[str, Lowered] = {}
_ROWS: dict[str, Lowered] = {}


def lowers(name: str) -> Callable[[Lowered], Lowered]:
    """Registers the lowering of an operator by overload name."""

    def register(function: Lowered) -> Lowered:
        _LOWERINGS[name] = function
        return function

    return register


def lowers_rows(name: str) -> Callable[[Lowered], Lowered]:
    """As `lowers`, for generators whose `rows_fuse` holds."""

    def register(function: Lowered) -> Lowered:
        _ROWS[name] = function
        return function

    return register


def lower_composite(
    ctx: Lowering, op: Operator, values: dict[str, Any], fakes: dict[str, Any], result: Any
) -> Any:
    """The operator's loops, or None where it has no lowering of this kind."""
    function = _LOWERINGS.get(op.name)
    if function is None and ctx.target().rows_fuse:
        function = _ROWS.get(op.name)
    return None if function is None else function(ctx, values, fakes, result)
