"""Functions of complex numbers where their formulas would overflow, cancel or meet infinite parts."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import argand_aten as aten

INF = float("inf")
ENDS = [-INF, -1.0, -0.5, 0.0, 2.0, INF]
FUNCTIONS = {
    **{name: getattr(np, name) for name in ("exp", "log1p", "tanh", "sqrt", "log")},
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}


def close(got: np.ndarray, want: np.ndarray, rtol: float) -> None:
    np.testing.assert_allclose(got.real, want.real, rtol, 1e-30)
    np.testing.assert_allclose(got.imag, want.imag, rtol, 1e-30)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_infinite_parts(name: str, dtype: str) -> None:
    z = np.array([complex(a, b) for a in ENDS for b in ENDS if np.isinf([a, b]).any()], dtype)
    if name == "sigmoid":
        z = z[z.real == INF]  # elsewhere it is a quotient by an infinite number
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = FUNCTIONS[name](z)
    got = getattr(aten, name)(aten.from_numpy(z)).numpy()
    close(got, want, 1e-6 if dtype == "complex64" else 1e-14)


@pytest.mark.parametrize("name", ["log1p", "atan", "atanh", "asinh", "acosh"])
def test_parts_whose_squares_overflow(name: str) -> None:
    z = np.array([complex(a, b) for a in (-1e30, 0.5, 1e30) for b in (-1e30, 1.0, 1e30)][:9])
    z = z[(np.abs(z) > 2)].astype("complex64")
    got = getattr(aten, name)(aten.from_numpy(z)).numpy()
    close(got, FUNCTIONS[name](z.astype("complex128")), 1e-5)


def test_log1p_near_its_pole() -> None:
    z = np.array([-1 + 1e-5j, -1 - 3e-8j, -1.00001 + 0j, 1e-8 + 1e-9j], "complex64")
    got = aten.log1p(aten.from_numpy(z)).numpy()
    want = np.log1p(z.astype("complex128"))
    close(got, want, 1e-5)


def test_logaddexp_keeps_the_phase_of_the_first_of_equal_sizes() -> None:
    """exp(x) is exp(x + 2 pi i), but the result goes by the phase of one of them."""
    x, y = aten.tensor([1 + 7j, 1 - 2j]), aten.tensor([1 + 6j, 1 - 1j])
    got = aten.logaddexp(x, y).numpy()
    np.testing.assert_allclose(np.exp(got), np.exp(x.numpy()) + np.exp(y.numpy()), rtol=1e-5)
    np.testing.assert_allclose(got.imag, [6.5, -1.5], rtol=1e-5)
