"""Questions of a program about how it runs: what traces bytecode answers them with yes, everywhere else it is no."""

from __future__ import annotations

__all__ = ["is_compiling", "is_exporting"]


def is_compiling() -> bool:
    """Whether the code runs in a compiled function."""
    return False


def is_exporting() -> bool:
    """Whether the code runs in a function that is traced for export."""
    return False
