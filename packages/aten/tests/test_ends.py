"""Values at the ends of a dtype's range and of a function's domain, and what has no elements."""

from __future__ import annotations

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
from argand_aten import ops

INF, NAN = float("inf"), float("nan")
MAX, TINY, LEAST = 1.7976931348623157e308, 2.2250738585072014e-308, 5e-324


def of(name: str, *numbers: float) -> list[float]:
    result = getattr(ops, name)(*(c10.tensor([x], dtype=c10.float64) for x in numbers))
    return [float(x) for x in result.numpy()]


@pytest.mark.parametrize(
    "name, arguments, expected",
    [  # to 15 digits by mpmath
        ("erfinv", (1 - 2.0**-53,), 5.863584748755168),
        ("erfinv", (-1 + 1e-9,), -4.320005388105362),
        ("i0e", (MAX,), 2.9754474593158995e-155),
        ("i1e", (-MAX,), -2.9754474593158995e-155),
        ("bessel_y0", (LEAST,), -473.9990734230043),
        ("scaled_modified_bessel_k0", (MAX,), 9.347643879329245e-155),
        ("modified_bessel_k1", (TINY,), 1 / TINY),
        ("scaled_modified_bessel_k1", (1e-20,), 1e20),
        ("igammac", (1e-200, 0.5), 5.597735947761608e-201),
        ("igammac", (1e-5, 1e-5), 0.000109351300956329863),
        ("igammac", (0.009, 1.0), 0.00199259984617105759),
    ],
)
def test_special_functions(name: str, arguments: tuple[float, ...], expected: float) -> None:
    np.testing.assert_allclose(of(name, *arguments), [expected], rtol=2e-14)


@pytest.mark.parametrize("length", [1, 3, 40])
def test_limits_keep_the_sign_of_zero(length: int) -> None:
    x = aten.full([length], -0.0)
    for kept in (aten.relu(x), aten.clamp(x, 0.0), aten.clamp(x, 0.0, 6.0), aten.hardtanh(x, 0.0)):
        assert np.signbit(kept.numpy()).all()
    assert not np.signbit(aten.softshrink(x - 0.25).numpy()).any()


def test_variances_are_not_below_0() -> None:
    x = c10.tensor([[1e-40, 1e-40, 0.0, 1e-40]])
    got = aten.var(x, [1]).numpy()
    assert got == 0 and not np.signbit(got).any()
    assert aten.var(x, [1], correction=5).numpy() != -INF


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3)])
def test_norms_of_no_elements(shape: tuple[int, ...]) -> None:
    x = aten.empty(list(shape))
    for order in (1, 2, INF):
        assert (ops.linalg_matrix_norm(x, order).numpy() == 0).all()
        assert ops.linalg_cond(x, order).shape == shape[:-2]
    assert ops.linalg_vector_norm(x, 2).item() == 0
    for order in (INF, -INF, -1, -2):
        with pytest.raises(RuntimeError, match=r"linalg_vector_norm: .* no identity"):
            ops.linalg_vector_norm(x, order)
    kept = [d for d, size in enumerate(shape) if size]
    if kept:
        assert ops.linalg_vector_norm(x, INF, kept[:1]).numel() == 0


def test_as_strided_scatter_keeps_gaps() -> None:
    memory = aten.arange(20).reshape([10, 2])
    x = memory[1:5, :1]
    got = aten.as_strided_scatter(x, aten.full([2, 2], -1), [2, 2], [1, 2])
    assert got.tolist() == [[-1], [-1], [6], [8]] and got.stride() == x.stride()
    got = aten.as_strided_scatter(x, aten.full([2], -1), [2], [2], 4)
    assert got.tolist() == [[2], [-1], [-1], [8]] and x.tolist() == [[2], [4], [6], [8]]


@pytest.mark.parametrize(
    "name, arguments", [("cauchy_", ()), ("log_normal_", ()), ("geometric_", (0.5,)), ("logit", ()), ("mvlgamma", (2,))]
)  # fmt: skip
def test_no_complex_numbers(name: str, arguments: tuple[float, ...]) -> None:
    x = c10.tensor([0.25 + 1j])
    with pytest.raises(NotImplementedError, match="complex64"):
        getattr(x, name)(*arguments)
    assert x.tolist() == [0.25 + 1j]


@pytest.mark.parametrize("name, reference", [("lgamma", "gammaln"), ("digamma", "psi")])
def test_gamma_functions_round_once(name: str, reference: str) -> None:
    """In float32, near their roots and poles, too; far out they overflow where the value does."""
    from scipy import special

    rng = np.random.default_rng(5)
    x = np.concatenate(
        [
            rng.uniform(1e-3, 12, 5000),
            rng.uniform(0.99, 1.01, 2000),
            rng.uniform(1.99, 2.01, 2000),
            np.linspace(1.4615, 1.4618, 2000),
            10 ** rng.uniform(-38, 38, 2000),
            rng.uniform(-30, 0, 5000),
            -(10 ** rng.uniform(-30, 5, 2000)),
        ]
    ).astype(np.float32)
    with np.errstate(over="ignore"):
        expected = getattr(special, reference)(x.astype(np.float64))
        nearest = expected.astype(np.float32)
    found = getattr(ops, name)(c10.from_numpy(x)).numpy()
    np.testing.assert_array_max_ulp(found, nearest, 1)


def test_gamma_functions_at_their_ends() -> None:
    x = c10.tensor([0.0, -0.0, 1, 2, -1, -7, -1e10, INF, -INF, NAN, 4.09e36], dtype=c10.float32)
    lgamma, digamma = ops.lgamma(x).numpy(), ops.digamma(x).numpy()
    np.testing.assert_array_equal(lgamma, [INF, INF, 0, 0, INF, INF, INF, INF, INF, NAN, INF])
    np.testing.assert_array_equal(digamma[[0, 1, 4, 5, 7, 8]], [-INF, INF, NAN, NAN, INF, NAN])
