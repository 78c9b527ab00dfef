"""What libraries ask of the compiler."""

from __future__ import annotations

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Whether `argand.compile` makes programs for such devices."""
    return device_type in ("cpu", "cuda")
