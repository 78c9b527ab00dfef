"""Functions of complex numbers where their formulas would overflow, cancel or meet infinite parts."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10

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


@pytest.mark.parametrize("tier", ["0", "1", "2"])
def test_both_products_of_a_part_are_rounded(tier: str) -> None:
    """No fused operation takes one of them as it is: what is the difference of equal products is 0."""
    program = """
import argand_aten as aten, argand_c10 as c10
for dtype in (c10.complex64, c10.complex128):
    for x in (aten.randn([1003], dtype=dtype), aten.randn([17, 34], dtype=dtype)[:, ::2]):
        y = aten.conj(x)
        for product in (x * y, aten.addcmul(aten.zeros_like(x), x, y), aten.prod(aten.stack([x, y]), 0), aten.cumprod(aten.stack([x, y], -1), -1)[..., 1]):
            assert not aten.imag(product).any(), (dtype, x.shape)
        assert aten.equal(aten.real(x * y), aten.real(x) * aten.real(x) + aten.imag(x) * aten.imag(x))
"""
    environment = {**os.environ, "ARGAND_CPU_TIER": tier}  # at most the processor's
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_arithmetic_of_special_parts(dtype: str) -> None:
    """Products by the formula; quotients by 0 part by part; choices and comparisons."""
    parts = [0.0, -0.0, 1.0, -2.5, INF, -INF, float("nan"), np.finfo(dtype).max]
    z = np.array([complex(a, b) for a in parts for b in parts], dtype)
    a, b = (np.ascontiguousarray(v.ravel()) for v in np.meshgrid(z, z))
    x, y = aten.from_numpy(a), aten.from_numpy(b)

    def check(got: aten.Tensor, re: np.ndarray, im: np.ndarray) -> None:
        for found, want in ((aten.real(got).numpy(), re), (aten.imag(got).numpy(), im)):
            np.testing.assert_array_equal(found, want)
            settled = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(found)[settled], np.signbit(want)[settled])

    with np.errstate(all="ignore"):
        check(x * y, a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)
        check(-x, -a.real, -a.imag)
        zero = np.zeros_like(z.real)
        for divisor in (0, complex(-0.0, 0.0)):
            check(aten.from_numpy(z) / divisor, z.real / zero, z.imag / zero)
    check(aten.conj(x), a.real, -a.imag)
    first = a.real > 0
    check(
        aten.where(aten.real(x) > 0, x, y),
        *(np.where(first, v, w) for v, w in ((a.real, b.real), (a.imag, b.imag))),
    )
    np.testing.assert_array_equal((x == y).numpy(), a == b)
    np.testing.assert_array_equal((x != y).numpy(), a != b)
    np.testing.assert_array_equal(aten.isnan(x).numpy(), np.isnan(a))
    np.testing.assert_array_equal(x.to(c10.bool).numpy(), a != 0)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_reductions_of_every_length(dtype: str) -> None:
    """Small whole parts, so that every sum and product is exact."""
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 3, 5, 8, 13, 17, 33, 70, 700):
        z = (rng.integers(-9, 10, (n, 3)) + 1j * rng.integers(-9, 10, (n, 3))).astype(dtype)
        turns = (1j ** rng.integers(0, 4, (n, 5))).astype(dtype)
        for x, t in ((z, turns), (np.ascontiguousarray(z.T).T, np.ascontiguousarray(turns.T).T)):
            for dim in (0, 1):
                np.testing.assert_array_equal(aten.sum(aten.from_numpy(x), dim).numpy(), x.sum(dim))
                product = aten.prod(aten.from_numpy(t), dim).numpy()
                np.testing.assert_array_equal(product, t.prod(dim))
                np.testing.assert_array_equal(aten.any(aten.from_numpy(x), dim).numpy(), x.any(dim))
                running = aten.cumprod(aten.from_numpy(t), dim).numpy()
                np.testing.assert_array_equal(running, t.cumprod(dim))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_conversions_of_both_parts(dtype: str) -> None:
    rng = np.random.default_rng(0)
    z = (rng.integers(0, 100, 301) + 1j * rng.integers(0, 3, 301)).astype(dtype)
    names = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
    for name in names:
        for step, n in itertools.product((1, 2), (1, 3, 9, 301)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # imaginary parts are dropped
                want = z[:n:step].astype(name)
            got = aten.from_numpy(z[:n].copy())[::step].to(getattr(c10, name))
            np.testing.assert_array_equal(got.numpy(), want)
            back = aten.from_numpy(z[:n].astype(name))[::step].to(getattr(c10, dtype))
            np.testing.assert_array_equal(back.numpy(), want.astype(dtype))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_parts_of_every_length(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for n in (*range(20), 1000, 5003, 100003):
        z = (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(dtype)
        x = aten.from_numpy(z)
        np.testing.assert_array_equal((aten.imag(x) * 2).numpy(), z.imag * 2)
        np.testing.assert_array_equal((aten.real(x) + aten.imag(x)).numpy(), z.real + z.imag)
        parts = [aten.from_numpy(np.ascontiguousarray(part)) for part in (z.real, z.imag)]
        np.testing.assert_array_equal(aten.complex(*parts).numpy(), z)
        three = aten.stack([*parts, parts[0]], -1).numpy()
        np.testing.assert_array_equal(three, np.stack([z.real, z.imag, z.real], -1))


def test_addcdiv_multiplies_before_it_divides() -> None:
    z = aten.from_numpy(np.array([1 + 1j, 2 - 3j]))
    out = aten.addcdiv(z, z, aten.zeros_like(z), value=0.5).numpy()
    np.testing.assert_array_equal([out.real, out.imag], [[INF, INF], [INF, -INF]])
    huge = aten.from_numpy(np.array([3e38], np.float32))
    assert aten.addcdiv(huge, huge, aten.full_like(huge, 2.0), value=4.0).item() == INF
