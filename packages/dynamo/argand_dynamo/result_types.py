"""The named tuples of operators with several results: those of traced calls, and the real ones that users get."""

from __future__ import annotations

from typing import Any

import argand_c10

__all__ = [
    "RESULT_TYPES",
    "find_result_type",
    "learn_result_type",
    "name_of_result_type",
    "result_type",
]

# The module that both name as theirs.
RESULT_TYPES = "argand.return_types"
_real: dict[type, type] = {}
_names: dict[type, tuple[str, int]] = {}


def learn_result_type(traced: type, op: Any) -> None:
    """Note which type `op` really returns where a trace has `traced`: that with the same fields."""
    if traced in _real:
        return
    fields: tuple[str, ...] = traced._fields  # type: ignore[attr-defined]
    for number, found in enumerate(op.result_types):
        if found is not None and found.__match_args__ == fields:
            _real[traced] = found
            _names[found] = op.name, number
            return


def result_type(traced: type) -> type | None:
    """The real type, None if it is not known."""
    return _real.get(traced)


def name_of_result_type(found: type) -> tuple[str, int] | None:
    """The operator and the overload's number by which another process finds a real type."""
    return _names.get(found)


def find_result_type(name: str, number: int) -> type:
    """What `name_of_result_type` named.

    Raises:
        LookupError: there is no such operator or overload, or it has no named results.
    """
    found: type | None = argand_c10.find_operator(name).result_types[number]
    if found is None:
        raise LookupError(f"{name} has no named results")
    _names[found] = name, number
    return found
