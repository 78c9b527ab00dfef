"""What packages of others do once, when they first meet a tensor: done before anything is traced, as no trace could keep it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

from argand_c10._C import tensor

__all__ = ["prepare_packages"]


def _einops(package: Any) -> None:
    """It looks for the framework of a tensor among classes, and keeps what it has found."""
    with contextlib.suppress(RuntimeError):  # it knows no Argand, unless the program calls it torch
        package.einops.get_backend(tensor(0.0))


_waiting: dict[str, Callable[[Any], None]] = {"einops": _einops}


def prepare_packages() -> None:
    """For those that have been imported since."""
    for name in [name for name in _waiting if name in sys.modules]:
        with contextlib.suppress(AttributeError):  # it is being imported
            _waiting[name](sys.modules[name])
            del _waiting[name]
