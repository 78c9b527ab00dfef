"""An operator call's arguments by name, and the operators that registry rules of a kind exist for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import argand_c10
from argand_c10.rules import rules_of
from argand_fx.schema import overload, schema_of


def dtype_name(dtype: Any) -> str:
    """ "float32" of argand.float32."""
    return str(dtype).rpartition(".")[2]


def lowerings(kind: type) -> Iterator[tuple[str, Any]]:
    """Names and lowerings of the operators whose lowering is of this class."""
    for name in argand_c10.operator_names():
        rules = rules_of(name)
        if rules is not None and isinstance(rules.lowering, kind):
            yield name, rules.lowering


class Arguments:
    """Reads calls of one overload: positions, keywords and the schema's defaults."""

    def __init__(self, name: str) -> None:
        schema = schema_of(overload(name))
        self.names = tuple(schema.index)
        self.defaults = {a.name: a.default for a in schema.arguments}

    def read(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return {**self.defaults, **dict(zip(self.names, args, strict=False)), **kwargs}


def forms(name: str) -> tuple[tuple[str, bool], ...]:
    """The in-place and the `out=` form of an operator that exist, with whether it is the in-place one."""
    known = set(argand_c10.operator_names())
    base, _, part = name.partition(".")
    inplace = f"{base}_.{part}" if part else f"{base}_"
    out = f"{name}_out" if part else f"{name}.out"
    return tuple((form, form == inplace) for form in (inplace, out) if form in known)
