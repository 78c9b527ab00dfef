"""The named tuples of operators with several results: those of traced calls, and the real ones that users get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import argand_c10
from argand_fx.shapes import FakeTensor

__all__ = ["RESULT_TYPES", "learn_result_type", "result_type"]

# The module that both name as theirs.
RESULT_TYPES = "argand.return_types"
_real: dict[type, type | None] = {}


def learn_result_type(
    traced: type, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Find the type of what `op` really returns: by a call on tensors of the same shapes without data."""
    if traced in _real:
        return
    try:
        found = type(
            op(*map(_without_data, args), **{k: _without_data(v) for k, v in kwargs.items()})
        )
    except Exception:  # an operator without a kernel for tensors without data
        found = tuple
    _real[traced] = found if found.__module__ == RESULT_TYPES else None


def result_type(traced: type) -> type | None:
    """The real type, None if it is not known."""
    return _real.get(traced)


def _without_data(value: Any) -> Any:
    if isinstance(value, FakeTensor):
        shape = tuple([int(getattr(n, "hint", n)) for n in value.shape])
        return argand_c10._C._empty_strided(shape, None, value.dtype, "meta")
    if isinstance(value, list | tuple):
        return [_without_data(item) for item in value]
    return value
