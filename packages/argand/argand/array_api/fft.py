"""Discrete Fourier transforms of the standard's names and arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import argand
from argand import Tensor

FunctionT = TypeVar("FunctionT", bound=Callable[..., Tensor])

_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_MANY = ("fftn", "ifftn", "rfftn", "irfftn")

__all__ = sorted([*_ONE, *_MANY, "fftfreq", "fftshift", "ifftshift", "rfftfreq"])


def _one(name: str) -> Callable[..., Tensor]:
    operator = getattr(argand.fft, name)

    def transform(
        x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Tensor:
        return operator(x, n, axis, norm)

    return _named(transform, name, operator)


def _many(name: str) -> Callable[..., Tensor]:
    operator = getattr(argand.fft, name)

    def transform(
        x: Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Tensor:
        return operator(x, s, axes, norm)

    return _named(transform, name, operator)


def _named(function: FunctionT, name: str, operator: Any) -> FunctionT:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(operator, "__doc__", None)
    return function


for _name in _ONE:
    globals()[_name] = _one(_name)
for _name in _MANY:
    globals()[_name] = _many(_name)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the points of `fft`."""
    return argand.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the points of `rfft`."""
    return argand.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The zero frequency moved to the middle."""
    return argand.fft.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Any = None) -> Tensor:
    """The zero frequency moved back to the start."""
    return argand.fft.ifftshift(x, axes)
