"""Window functions (Harris 1978), as vectors (M); `sym=False` gives the periodic window, for spectra.

All compute in float64 and round once. They raise ValueError for a negative M, dtypes other than float32 and float64, and parameters out of range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import argand_aten as aten
from argand_c10 import Tensor, float32, float64, get_default_dtype, strided

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann", "kaiser", "nuttall",
]  # fmt: skip


def _window(
    name: str, M: int, factory: dict[str, Any], formula: Callable[[Tensor], Tensor]
) -> Tensor:
    """formula(0, 1, ..., M - 1) with the dtype, device and requires_grad of `factory`."""
    dtype = factory.get("dtype") or get_default_dtype()
    if M < 0:
        raise ValueError(f"{name}: got M={M}, expected one that is not negative")
    if dtype not in (float32, float64):
        raise ValueError(f"{name}: got dtype {dtype}, expected float32 or float64")
    if factory.get("layout", strided) is not strided:
        raise ValueError(f"{name}: got layout {factory['layout']}, expected strided")
    unknown = factory.keys() - {"dtype", "layout", "device", "requires_grad"}
    if unknown:
        raise TypeError(f"{name}: got an unexpected keyword argument {min(unknown)!r}")
    at = aten.arange(M, dtype=float64, device=factory.get("device"))
    values = formula(at) if M > 1 else aten.ones_like(at)
    return values.to(dtype=dtype).requires_grad_(factory.get("requires_grad", False))


def _steps(M: int, sym: bool) -> int:
    """Places between the window's ends; the periodic window's end is the next one's begin."""
    return M - 1 if sym else M


def _check_positive(name: str, argument: str, value: float) -> None:
    if value <= 0:
        raise ValueError(f"{name}: got {argument}={value}, expected a positive number")


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **factory: Any) -> Tensor:
    """a[0] - a[1] cos(2 pi n / N) + a[2] cos(4 pi n / N) - ..."""
    if not isinstance(a, Iterable):
        raise TypeError(f"general_cosine: got a={a!r}, expected a list of coefficients")
    weights = list(a)
    if not weights:
        raise ValueError("general_cosine: got no coefficients, expected at least one")
    step = 2 * math.pi / max(_steps(M, sym), 1)

    def formula(n: Tensor) -> Tensor:
        total = aten.zeros_like(n)
        for i, weight in enumerate(weights):
            total = total + (-1) ** i * weight * aten.cos(n * (i * step))
        return total

    return _window("general_cosine", M, factory, formula)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **factory: Any) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi n / N)."""
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, **factory)


def hamming(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """`general_hamming` with alpha 0.54."""
    return general_hamming(M, alpha=0.54, sym=sym, **factory)


def hann(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """`general_hamming` with alpha 0.5: a squared sine."""
    return general_hamming(M, alpha=0.5, sym=sym, **factory)


def blackman(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """`general_cosine` with 0.42, 0.5 and 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **factory)


def nuttall(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """`general_cosine` with the four coefficients of Nuttall 1981's window with the lowest side lobes."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **factory)


def bartlett(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """A triangle: 1 - |2 n / N - 1|."""
    return _window("bartlett", M, factory, lambda n: 1 - aten.abs(2 * n / _steps(M, sym) - 1))


def cosine(M: int, *, sym: bool = True, **factory: Any) -> Tensor:
    """Half of a sine: sin(pi (n + 0.5) / (N + 1))."""
    return _window(
        "cosine", M, factory, lambda n: aten.sin((n + 0.5) * (math.pi / (_steps(M, sym) + 1)))
    )


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **factory: Any
) -> Tensor:
    """exp(-|n - center| / tau); only a periodic window may have another `center` than its middle."""
    _check_positive("exponential", "tau", tau)
    if sym and center is not None:
        raise ValueError(
            f"exponential: got center={center} for a symmetric window, expected None; its center is its middle"
        )
    middle = _steps(M, sym) / 2 if center is None else center
    return _window("exponential", M, factory, lambda n: aten.exp(-aten.abs(n - middle) / tau))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **factory: Any) -> Tensor:
    """exp(-((n - N / 2) / std)**2 / 2)."""
    _check_positive("gaussian", "std", std)
    return _window(
        "gaussian", M, factory, lambda n: aten.exp(-0.5 * ((n - _steps(M, sym) / 2) / std) ** 2)
    )


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **factory: Any) -> Tensor:
    """I0(beta sqrt(1 - (2 n / N - 1)**2)) / I0(beta) (Kaiser and Schafer 1980)."""
    if beta < 0:
        raise ValueError(f"kaiser: got beta={beta}, expected one that is not negative")

    def formula(n: Tensor) -> Tensor:
        inside = aten.clamp(1 - (2 * n / _steps(M, sym) - 1) ** 2, min=0.0)
        return aten.i0(beta * aten.sqrt(inside)) / aten.i0(aten.full_like(n[:1], beta))

    return _window("kaiser", M, factory, formula)
