"""An operator call's arguments by name: positions, keywords and defaults of the overload's schema."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argand_c10 import Operator

_MARKS = re.compile(r"\([a-z][a-z0-9|]*!?\)|\[\d*\]|\?")


class _Missing:
    """Stands for an argument without a default."""


MISSING = _Missing()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A schema argument. `base` is its type without marks ("Tensor", "int", "Scalar", "ScalarType")."""

    name: str
    type: str
    base: str
    default: Any
    keyword_only: bool
    is_list: bool


def _split(text: str) -> list[str]:
    parts, depth, quoted, current = [], 0, False, ""
    for c in text:
        if c == '"':
            quoted = not quoted
        elif not quoted and c in "([":
            depth += 1
        elif not quoted and c in ")]":
            depth -= 1
        if c == "," and depth == 0 and not quoted:
            parts.append(current)
            current = ""
        else:
            current += c
    return [p.strip() for p in [*parts, current] if p.strip()]


def _default(text: str) -> Any:
    value = {"true": True, "false": False}.get(text)
    if value is not None:
        return value
    read = ast.literal_eval(text)
    return tuple(read) if isinstance(read, list) else read


def parse_parameters(schema: str) -> tuple[Parameter, ...]:
    """The arguments of a schema text in order."""
    head = schema[: schema.rindex("->")]
    found: list[Parameter] = []
    keyword_only = False
    for part in _split(head[head.index("(") + 1 : head.rindex(")")]):
        if part == "*":
            keyword_only = True
            continue
        declared, _, default = part.partition("=")
        kind, _, argument = declared.strip().rpartition(" ")
        base = _MARKS.sub("", kind).split("|")[0]
        found.append(
            Parameter(
                argument,
                kind,
                base,
                _default(default.strip()) if default else MISSING,
                keyword_only,
                "[" in kind,
            )
        )
    return tuple(found)


def schema_of(op: Operator) -> str:
    """The schema text of an overload."""
    for schema in (op.schema, *op.schemas):
        if schema.startswith(op.name + "("):
            return schema
    raise RuntimeError(
        f"{op.name}: got an operator without a schema, expected a registered overload"
    )


@dataclass(frozen=True, slots=True)
class Signature:
    """What an overload takes and gives. `changes`: it writes into an argument; `gives_list`: it returns a list of tensors."""

    schema: str
    parameters: tuple[Parameter, ...]
    changes: bool
    gives_list: bool


_signatures: dict[str, Signature] = {}


def signature_of(op: Operator) -> Signature:
    """The signature of an overload."""
    found = _signatures.get(op.name)
    if found is None:
        schema = schema_of(op)
        parameters = parse_parameters(schema)
        changes = any("!" in p.type for p in parameters)
        found = Signature(schema, parameters, changes, "[]" in schema.rpartition("->")[2])
        _signatures[op.name] = found
    return found


def bind(op: Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """All arguments by name, defaults filled in, in the schema's order."""
    bound: dict[str, Any] = {}
    n = len(args)
    for i, p in enumerate(signature_of(op).parameters):
        value = args[i] if i < n and not p.keyword_only else kwargs.get(p.name, p.default)
        if value is MISSING:
            raise TypeError(
                f"{op.name}: got no argument {p.name!r}, expected one; schema: {schema_of(op)}"
            )
        if p.is_list and value is not None and not isinstance(value, (list, tuple)):
            value = (value,)
        bound[p.name] = tuple(value) if isinstance(value, list) else value
    return bound
