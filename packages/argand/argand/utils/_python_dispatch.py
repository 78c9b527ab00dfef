"""Subclasses of tensors that take part in dispatch: PyTorch's private module, which programs use nevertheless."""

from __future__ import annotations

__all__ = ["is_traceable_wrapper_subclass"]


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether it is a tensor made of others, which tracing looks into: there are none."""
    return False
