"""What the artifact builder reads from an operator's schema text: kinds of arguments and alias marks."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import argand_c10

_ALIAS = re.compile(r"\(([a-z][a-z0-9|]*)!?\)")


@dataclass(frozen=True, slots=True)
class SchemaArgument:
    """One argument.

    Attributes:
        type: without alias marks and list sizes: "Tensor", "int[]", "float".
        alias: its alias mark, "a", or "".
        copies: of "int[2]" the 2: how many copies one int stands for.
    """

    name: str
    type: str
    optional: bool
    alias: str
    copies: int = 0


@dataclass(frozen=True, slots=True)
class Schema:
    """An overload's arguments in order and its results' types and alias marks."""

    arguments: tuple[SchemaArgument, ...]
    results: tuple[tuple[str, str], ...]


def _split(text: str) -> list[str]:
    """Parts at the commas outside brackets and quotes."""
    parts, depth, quoted, current = [], 0, "", ""
    for c in text:
        if quoted:
            quoted = "" if c == quoted else quoted
        elif c in "\"'":
            quoted = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(current.strip())
            current = ""
            continue
        current += c
    return [*parts, current.strip()] if current.strip() else parts


def _plain_type(text: str) -> tuple[str, bool, str]:
    found = _ALIAS.search(text)
    plain = re.sub(r"\[\d+\]", "[]", _ALIAS.sub("", text))
    return plain.rstrip("?"), plain.endswith("?"), found.group(1) if found else ""


def parse_schema(schema: str) -> Schema:
    """Parse "name(Tensor(a) self, int[2] size, *, float p=0.5) -> (Tensor(a), Tensor)"."""
    head, _, tail = schema.rpartition("->")
    arguments = []
    for part in _split(head[head.index("(") + 1 : head.rindex(")")]):
        if part == "*":
            continue
        type_text, _, name = part.partition("=")[0].strip().rpartition(" ")
        kind, optional, alias = _plain_type(type_text)
        size = re.search(r"\[(\d+)\]", type_text)
        copies = int(size.group(1)) if size else 0
        arguments.append(SchemaArgument(name, kind, optional, alias, copies))
    tail = tail.strip()
    entries = _split(tail[1:-1]) if tail.startswith("(") else [tail] if tail else []
    results = []
    for entry in entries:
        kind, _, alias = _plain_type(entry.split(" ")[0])
        results.append((kind, alias))
    return Schema(tuple(arguments), tuple(results))


def schema_of(operator: str) -> Schema:
    """The schema of a registered overload.

    Raises:
        RuntimeError: if the operator is not registered.
    """
    return _read(argand_c10.find_operator(operator), operator)


@functools.cache
def _read(found: argand_c10.Operator, operator: str) -> Schema:
    for schema in found.schemas:
        if schema.startswith(operator + "("):
            return parse_schema(schema)
    raise RuntimeError(f"{operator}: got a name without an overload, expected one as 'max.dim'")


def aliases_of(operator: str) -> list[tuple[int, int]]:
    """Pairs (result, argument) that may share memory."""
    schema = schema_of(operator)
    return [
        (i, k)
        for i, (_, mark) in enumerate(schema.results)
        for k, argument in enumerate(schema.arguments)
        if mark and mark == argument.alias
    ]
