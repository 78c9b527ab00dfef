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


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sigmoid_where_the_exponential_overflows(dtype: str) -> None:
    z = np.array(
        [complex(a, b) for a in (-95.0, -200.0, -800.0, 200.0) for b in (-2.0, 0.0, 1.0)], dtype
    )
    got = aten.sigmoid(aten.from_numpy(z)).numpy()
    close(got, np.where(z.real < 0, np.exp(z.astype("complex128")), 1), 1e-6)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_expm1_far_below_zero_keeps_its_imaginary_part(dtype: str) -> None:
    z = np.array([complex(a, b) for a in (-60.0, -30.0, -9.0) for b in (-2.0, 3.0)], dtype)
    close(aten.expm1(aten.from_numpy(z)).numpy(), np.expm1(z.astype("complex128")), 1e-6)


@pytest.mark.parametrize("name", ["log1p", "atan", "atanh", "asinh", "acosh"])
def test_parts_whose_squares_overflow(name: str) -> None:
    z = np.array([complex(a, b) for a in (-1e30, 0.5, 1e30) for b in (-1e30, 1.0, 1e30)][:9])
    z = z[(np.abs(z) > 2)].astype("complex64")
    got = getattr(aten, name)(aten.from_numpy(z)).numpy()
    close(got, FUNCTIONS[name](z.astype("complex128")), 1e-5)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "acos", "asinh", "acosh", "atan"])
def test_parts_next_to_overflow(name: str, dtype: str) -> None:
    """The modulus overflows where the function does not."""
    limits = np.finfo(dtype)
    ends = [limits.max, -limits.max, 0.0, 1.0]
    z = np.array([complex(a, b) for a in ends for b in ends if max(abs(a), abs(b)) > 1], dtype)
    got = getattr(aten, name)(aten.from_numpy(z)).numpy()
    close(got, FUNCTIONS[name](z), 1e-6 if dtype == "complex64" else 1e-14)
    root = aten.rsqrt(aten.from_numpy(z[:1])).numpy()
    close(root, 1 / np.sqrt(z[:1]), 1e-6)


def test_zeros_beside_what_has_no_sine() -> None:
    """As in C99, annex G."""
    nan = float("nan")
    z = aten.tensor([complex(0.0, INF), complex(0.0, nan), complex(INF, 0.0), complex(INF, nan)])
    np.testing.assert_array_equal(aten.sinh(z).real.numpy(), [0, 0, INF, INF])
    np.testing.assert_array_equal(aten.sinh(z).imag.numpy(), [nan, nan, 0, nan])
    np.testing.assert_array_equal(aten.cosh(z).real.numpy(), [nan, nan, INF, INF])
    np.testing.assert_array_equal(aten.cosh(z).imag.numpy(), [0, 0, 0, nan])
    turned = aten.tensor([complex(INF, 0.0), complex(0.0, INF)])
    np.testing.assert_array_equal(aten.sin(turned).imag.numpy(), [0, INF])
    np.testing.assert_array_equal(aten.cos(turned).real.numpy(), [nan, INF])
    lost = aten.tensor([complex(0.0, nan)])
    np.testing.assert_allclose(aten.acos(lost).real.numpy(), [np.pi / 2])
    np.testing.assert_array_equal(aten.asin(lost).real.numpy(), [0])
    np.testing.assert_allclose(aten.acosh(lost).imag.numpy(), [np.pi / 2])


def test_inverse_tangents_beside_their_poles() -> None:
    z = np.array([1 + 1e-200j, -1 - 1e-160j, 1 + 1e-3j])
    close(aten.atanh(aten.from_numpy(z)).numpy(), np.arctanh(z), 1e-14)
    close(aten.atan(aten.from_numpy(z * 1j)).numpy(), 1j * np.arctanh(z), 1e-14)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0])
def test_small_powers_are_products_and_roots(power: float) -> None:
    """Their results are finite, infinite or 0 as those of the product, not of exp(power log z)."""
    z = np.array([complex(0.0, INF), complex(1e30, -1e30), complex(0.0, -0.0), 2 - 1j])
    z = z.astype("complex64")
    x = aten.from_numpy(z)
    want = {
        0.0: lambda: aten.ones_like(x),
        1.0: lambda: x,
        2.0: lambda: x * x,
        3.0: lambda: x * x * x,
        0.5: lambda: aten.sqrt(x),
        -0.5: lambda: aten.rsqrt(x),
        -1.0: lambda: aten.reciprocal(x),
        -2.0: lambda: aten.reciprocal(x * x),
    }[power]()
    np.testing.assert_array_equal(aten.pow(x, power).numpy(), want.numpy())
    base_one = aten.pow(1.0, aten.from_numpy(z))
    np.testing.assert_array_equal(base_one.numpy(), np.ones(4))


def test_nan_to_num_of_both_parts() -> None:
    nan = float("nan")
    x = aten.tensor([complex(nan, INF), complex(-INF, 2.0)])
    low, high = np.finfo("float32").min, np.finfo("float32").max
    np.testing.assert_array_equal(aten.nan_to_num(x).numpy(), [complex(0, high), complex(low, 2)])
    got = aten.nan_to_num(x, 1.0, 3.0, -4.0).numpy()
    np.testing.assert_array_equal(got, [complex(1, 3), complex(-4, 2)])


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
