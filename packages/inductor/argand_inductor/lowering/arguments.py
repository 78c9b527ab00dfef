"""An operator call's arguments by name: positions, keywords and defaults of the overload's schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argand_c10 import Operator
from argand_fx.schema import schema_of


def bind(op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """All arguments by name, defaults filled in, in the schema's order; lists are tuples."""
    bound: dict[str, Any] = {}
    n = len(args)
    for i, a in enumerate(schema_of(op).arguments):
        if i < n and not a.kwonly:
            value = args[i]
        elif a.name in kwargs or a.has_default:
            value = kwargs.get(a.name, a.default)
        else:
            raise TypeError(
                f"{op.name}: got no argument {a.name!r}, expected one; schema: {op.schema}"
            )
        if a.is_list and value is not None and not isinstance(value, (list, tuple)):
            value = (value,)
        bound[a.name] = tuple(value) if isinstance(value, list) else value
    return bound
