"""Linear algebra: the `linalg_` operators of the registry under their names in this namespace."""

from __future__ import annotations

from typing import Any

from argand_aten import ops
from argand_c10.errors import LinAlgError

_PREFIX = "linalg_"
__all__ = ["LinAlgError", *(n.removeprefix(_PREFIX) for n in dir(ops) if n.startswith(_PREFIX))]


def __getattr__(name: str) -> Any:
    found = getattr(ops, _PREFIX + name, None)
    if found is None:
        raise AttributeError(f"module 'argand.linalg' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
