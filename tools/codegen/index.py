"""The index: schemas and facts of every operator, so that one family is generated from its own file and this one alone."""

from __future__ import annotations

import json
import os
from typing import Any

from tools.codegen.model import Location, Operator, Registry, Schema


def _facts(op: Operator) -> dict[str, Any]:
    # Nothing that changes with an expression, a body or a doc text: other families must not be rebuilt for those.
    facts: dict[str, Any] = {
        "schema": str(op.schema),
        "kind": op.kind,
        "family": op.family,
        "dtypes": list(op.dtypes),
        "variants": list(op.variants),
        "aliases": list(op.aliases),
        "differentiable": op.is_differentiable,
    }
    if op.backward_of:
        facts["backward_of"] = op.backward_of
    return facts


def dump(registry: Registry) -> str:
    """The index as JSON text, one operator a line."""
    lines = ",\n".join(json.dumps(_facts(op), sort_keys=True) for op in registry.operators.values())
    return (
        '{"families": '
        + json.dumps(list(registry.families))
        + ',\n"operators": [\n'
        + lines
        + "\n]}\n"
    )


def load(path: str) -> tuple[list[Operator], tuple[str, ...]]:
    """The operators (facts only) and families of an index."""
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    where = Location(os.path.basename(path))
    operators = [
        Operator(
            schema=Schema.parse(o["schema"]),
            kind=o["kind"],
            family=o["family"],
            dtypes=tuple(o["dtypes"]),
            variants=tuple(o["variants"]),
            aliases=tuple(o["aliases"]),
            backward_of=o.get("backward_of"),
            location=where,
        )
        for o in data["operators"]
    ]
    return operators, tuple(data["families"])
