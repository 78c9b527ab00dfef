"""Which operators Python's syntax on tensors stands for, for objects that stand for tensors.

`Tensor` itself has them in C slots. The package that brings the operators registers them here once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from argand_c10._C import Operator

__all__ = ["operator_of", "register_protocol"]

# An operator, or `function(ops, *args)` over an object whose attributes are the operators.
Entry = Operator | Callable[..., Any]
_entries: dict[str, Entry] = {}


def register_protocol(entries: Mapping[str, Entry]) -> None:
    """Set what special methods do, by their names: `__add__`, `__iadd__`, `__neg__`, `__getitem__`, ..."""
    _entries.update(entries)


def operator_of(method: str) -> Entry | None:
    """What the special method stands for; None: tensors do not support it."""
    return _entries.get(method)
