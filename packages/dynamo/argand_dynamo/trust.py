"""Which modules are part of Argand or of Python."""

from __future__ import annotations

import sys

__all__ = ["is_trusted"]

_STDLIB = frozenset(sys.stdlib_module_names) - {"__main__"}


def is_trusted(module: str | None) -> bool:
    """Whether a module is part of Argand or of Python, so that its functions and classes do not change."""
    if not module:
        return False
    first = module.partition(".")[0]
    return first.startswith("argand") or first in _STDLIB
