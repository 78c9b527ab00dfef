"""Discrete Fourier transforms: the `fft_` operators of the registry under their names in this namespace."""

from __future__ import annotations

from typing import Any

from argand_aten import ops

_PREFIX = "fft_"
__all__ = [n.removeprefix(_PREFIX) for n in dir(ops) if n.startswith(_PREFIX)]


def __getattr__(name: str) -> Any:
    found = getattr(ops, _PREFIX + name, None)
    if found is None:
        raise AttributeError(f"module 'argand.fft' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
