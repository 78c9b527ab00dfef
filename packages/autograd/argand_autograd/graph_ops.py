"""Functions that may stand in compiler graphs beside operators."""

from __future__ import annotations

from argand_autograd import _C

__all__ = ["set_grad_mode"]


def set_grad_mode(enabled: bool) -> None:
    """Record operations from here on, or do not."""
    _C._set_grad_enabled(enabled)

