"""The choice among implementations of scaled dot-product attention."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """Implementations of attention, by PyTorch's names."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(
    backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Inside, attention may use these implementations.

    Args:
        backends: one or several. Accepted without effect: a device has one implementation here.
        set_priority: whether their order counts; accepted, without effect.

    Raises:
        AssertionError: for anything but backends, and for none.
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    wrong = [backend for backend in chosen if not isinstance(backend, SDPBackend)]
    if wrong or not chosen:
        raise AssertionError(
            f"sdpa_kernel: got {wrong or 'no backends'}, expected one or more of SDPBackend"
        )
    yield
