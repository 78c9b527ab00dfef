"""Regions with and without a tape."""

from __future__ import annotations

from argand_autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "enable_grad",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


class set_multithreading_enabled:
    """Switch, also as a context manager: results do not depend on the number of threads, so that it changes nothing.

    Args:
        mode: whether several threads may run a backward.
    """

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass

    def clone(self) -> set_multithreading_enabled:
        """Another one."""
        return type(self)(self.mode)
