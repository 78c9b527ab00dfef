"""Short texts for what a node computes: `float32[2, s0]`."""

from __future__ import annotations

from typing import Any

__all__ = ["describe"]


def describe(value: Any) -> str:
    """A tensor (real or fake) as dtype and sizes, a container of them by its parts, anything else by its text."""
    if isinstance(value, tuple | list):
        inside = ", ".join(map(describe, value))
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        name = getattr(value.dtype, "name", value.dtype)
        return f"{name}[{', '.join(map(str, value.shape))}]"
    return str(value)
