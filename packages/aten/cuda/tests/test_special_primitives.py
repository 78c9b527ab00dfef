"""Special functions of the element language in Triton's interpreter, against SciPy and NumPy in float64."""

from __future__ import annotations

import device_library
import interpreter
import numpy as np
import pytest
import scipy.special as special
import triton
import triton.language as tl

from argand_aten_cuda import math

device_library.install()

RNG = np.random.default_rng(3)
X = np.concatenate([RNG.uniform(-9, 9, 60), [0.0, 1.0, np.inf]])
POSITIVE = np.concatenate([RNG.uniform(0.05, 12, 60), [1.0, 2.0, 31.0]])
OTHER = RNG.uniform(0.1, 14, 63)


@triton.jit
def unary(out, x, n, F: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, F(tl.load(x + i, i < n, other=1)), i < n)


@triton.jit
def binary(out, x, y, n, F: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, F(tl.load(x + i, i < n, other=1), tl.load(y + i, i < n, other=1)), i < n)


def agree(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "x", "want"),
    [
        ("digamma", POSITIVE, special.digamma),
        ("digamma", X, lambda x: np.where(x == 0, -np.inf, special.digamma(x))),
        ("trigamma", np.append(POSITIVE, np.inf), lambda x: special.polygamma(1, x)),
        ("i0", X, lambda x: np.where(np.isinf(x), np.inf, special.i0(x))),
        ("i1", np.append(X, -np.inf), lambda x: np.where(np.isinf(x), x, special.i1(x))),
        ("i0e", X, lambda x: np.where(np.isinf(x), 0, special.i0e(x))),
        ("i1e", X, lambda x: np.where(np.isinf(x), 0, special.i1e(x))),
        ("bessel_k0", POSITIVE, special.k0),
        ("bessel_k1", POSITIVE, special.k1),
        ("bessel_k0e", POSITIVE, special.k0e),
        ("bessel_k1e", POSITIVE, special.k1e),
        ("frexp_mantissa", X, lambda x: np.frexp(x)[0]),
        ("frexp_exponent", X, lambda x: np.where(np.isinf(x), 0, np.frexp(x)[1])),
    ],
)
def test_unary(name, x, want):
    out = np.zeros_like(x)
    interpreter.run(unary, (1,), out, x.copy(), len(x), getattr(math, f"argand_{name}"), BLOCK=64)
    agree(out, want(x))


def test_digamma_of_float32():
    """A few units in the last place, beside the root at 1.46 and the poles too."""
    x = np.concatenate(
        [RNG.uniform(1e-3, 9, 400), RNG.uniform(1.46, 1.463, 20), RNG.uniform(-9, 0, 80), 10.0 ** np.arange(-30, 30, 5)]
    ).astype("float32")  # fmt: skip
    out = np.zeros_like(x)
    interpreter.run(unary, (1,), out, x, len(x), math.argand_digamma, BLOCK=512)
    want = special.digamma(x.astype("float64"))
    np.testing.assert_allclose(out[x > 0], want[x > 0], rtol=3e-6)
    np.testing.assert_allclose(out[x < 0], want[x < 0], rtol=3e-6, atol=3e-6)
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -3, -1e9], "float32")
    out = np.zeros_like(ends)
    interpreter.run(unary, (1,), out, ends, len(ends), math.argand_digamma, BLOCK=8)
    np.testing.assert_array_equal(out, [-np.inf, np.inf, np.inf] + [np.nan] * 4)


@pytest.mark.parametrize(
    ("name", "x", "y", "want"),
    [
        ("zeta", POSITIVE + 1.01, OTHER, special.zeta),
        ("igamma", POSITIVE, OTHER, special.gammainc),
        ("igammac", POSITIVE, OTHER, special.gammaincc),
        ("nextafter", POSITIVE, OTHER, np.nextafter),
    ],
)
def test_binary(name, x, y, want):
    out = np.zeros_like(x)
    interpreter.run(
        binary, (1,), out, x.copy(), y.copy(), len(x), getattr(math, f"argand_{name}"), BLOCK=64
    )
    agree(out, want(x, y))


def test_zeta_of_negative_arguments():
    x, y = np.array([2.0, 3.0, 4.0, 2.5, 2.0, 1.0]), np.array([-2.5, -0.25, -7.75, -0.5, -3.0, 2.0])
    out = np.zeros_like(x)
    interpreter.run(binary, (1,), out, x, y, len(x), math.argand_zeta, BLOCK=8)
    k = np.arange(400000)
    agree(
        out[:3],
        [
            np.sum((b + k) ** -a) + (b + len(k) - 0.5) ** (1 - a) / (a - 1)
            for a, b in zip(x[:3], y[:3], strict=True)
        ],
    )
    assert np.isnan(out[3]) and np.isposinf(out[4]) and np.isposinf(out[5])


def test_gcd():
    x = np.array([12, -18, 0, 7, 1 << 40, -5], np.int64)
    y = np.array([18, 12, 5, 0, 1 << 20, -15], np.int64)
    out = np.zeros_like(x)
    interpreter.run(binary, (1,), out, x, y, len(x), math.argand_gcd, BLOCK=8)
    np.testing.assert_array_equal(out, np.gcd(x, y))
