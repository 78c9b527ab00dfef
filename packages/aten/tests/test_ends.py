"""Values at the ends of a dtype's range and of a function's domain, and what has no elements."""

from __future__ import annotations

import os
import subprocess
import sys

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
        ("modified_bessel_k1", (LEAST,), INF),
        ("bessel_j0", (0.0,), 1.0),
        ("bessel_y1", (0.0,), -INF),
        ("igammac", (1e-200, 0.5), 5.597735947761608e-201),
        ("igammac", (1e-5, 1e-5), 0.000109351300956329863),
        ("igammac", (0.009, 1.0), 0.00199259984617105759),
    ],
)
def test_special_functions(name: str, arguments: tuple[float, ...], expected: float) -> None:
    np.testing.assert_allclose(of(name, *arguments), [expected], rtol=2e-14)


# Near where series change (0.125, 1, 8), and far out; of oscillating functions none near a root.
POINTS = [0.1, 0.2, 0.9999, 1.0001, 2.0, 7.9999, 8.0001, 30.0, 300.0]


@pytest.mark.parametrize(
    "name, expected",
    [  # to 17 digits by mpmath
        (
            "bessel_j0",
            [
                0.99750156206604,
                0.9900249722395764,
                0.7652416899907514,
                0.7651536798737107,
                0.22389077914123567,
                0.17167427006059147,
                0.1716273427913037,
                -0.08636798358104021,
                -0.03329855487630567,
            ],
        ),
        (
            "bessel_j1",
            [
                0.049937526036242,
                0.099500832639236,
                0.440018069409155,
                0.440083098829241,
                0.5767248077568734,
                0.23462211348375298,
                0.23465057773647316,
                -0.11875106261662294,
                -0.03188743137749995,
            ],
        ),
        (
            "bessel_y0",
            [
                -1.5342386513503667,
                -1.081105322372115,
                0.08817883858605309,
                0.08833508115060294,
                0.5103756726497451,
                0.22350568212501876,
                0.2235372942173232,
                -0.11729573168666403,
                -0.0318318897300034,
            ],
        ),
        (
            "bessel_y1",
            [
                -6.4589510947020266,
                -3.323824988111847,
                -0.7812997726267396,
                -0.7811258786685359,
                -0.10703243154093754,
                -0.15808478901001163,
                -0.1580361332006745,
                0.08442557066174723,
                0.03324554812131022,
            ],
        ),
        (
            "i0",
            [
                1.0025015629340956,
                1.010025027795146,
                1.2660093653460713,
                1.266122397167013,
                2.2795853023360673,
                427.5241302959667,
                427.60410492344266,
                781672297823.9775,
                4.475847367935052e128,
            ],
        ),
        (
            "i1",
            [
                0.050062526047092694,
                0.10050083402812512,
                0.5650890154620758,
                0.5652291968170087,
                1.590636854637329,
                399.8353805797589,
                399.91089657459787,
                768532038938.957,
                4.468381385036955e128,
            ],
        ),
        (
            "i0e",
            [
                0.9071009257823011,
                0.8269385516343293,
                0.46578539405188096,
                0.46573382421327963,
                0.30850832255367105,
                0.14343271079476064,
                0.14343085293704763,
                0.0731459464822373,
                0.02304255841508546,
            ],
        ),
        (
            "i1e",
            [
                0.045298446808809324,
                0.08228312352881215,
                0.20790542072288878,
                0.2079154084783648,
                0.21526928924893765,
                0.1341432411511081,
                0.13414174544648852,
                0.07191633059864755,
                0.02300412204026895,
            ],
        ),
        (
            "modified_bessel_k0",
            [
                2.4270690247020164,
                1.7527038555281458,
                0.42108463407875757,
                0.42096425263197584,
                0.11389387274953344,
                0.0001464862429734849,
                0.00014645516913106444,
                2.1324774964630563e-14,
                3.7236948548891435e-132,
            ],
        ),
        (
            "modified_bessel_k1",
            [
                9.853844780870606,
                4.775972543220472,
                0.6020095344988924,
                0.6018049481630383,
                0.13986588181652243,
                0.00015538580188336997,
                0.00015535262351196568,
                2.1677320018915495e-14,
                3.7298958583323724e-132,
            ],
        ),
        (
            "scaled_modified_bessel_k0",
            [
                2.6823261022628944,
                2.140757323380041,
                1.14451225211165,
                1.144413914029867,
                0.8415682150707714,
                0.43662567123322066,
                0.4366203660183664,
                0.22788666561625373,
                0.0723300317396073,
            ],
        ),
        (
            "scaled_modified_bessel_k1",
            [
                10.890182683049696,
                5.833386037186726,
                1.6362679432114942,
                1.6360390505934614,
                1.0334768470686886,
                0.46315222965831127,
                0.4631459561458426,
                0.2316541293777118,
                0.07245048166725841,
            ],
        ),
    ],
)
def test_bessel_functions(name: str, expected: list[float]) -> None:
    results = {length: of_all(name, POINTS * length) for length in (1, 3)}
    np.testing.assert_allclose(results[1], expected, rtol=1e-14)
    np.testing.assert_array_equal(results[3], np.tile(results[1], 3))
    narrow = getattr(ops, name)(c10.tensor(POINTS))
    exact = getattr(ops, name)(c10.tensor(POINTS).to(c10.float64))
    np.testing.assert_array_equal(narrow.numpy(), exact.to(c10.float32).numpy())


def of_all(name: str, numbers: list[float]) -> np.ndarray:
    return getattr(ops, name)(c10.tensor(numbers, dtype=c10.float64)).numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbours_and_remainders(dtype: str) -> None:
    rng = np.random.default_rng(0)
    low, high = np.log10(np.finfo(dtype).smallest_subnormal), np.log10(np.finfo(dtype).max)
    sizes = 10.0 ** rng.uniform(low / 2, high / 2, (2, 2000))
    x, y = (sizes * rng.choice([-1, 1], sizes.shape)).astype(dtype)
    ends = np.array([0, -0.0, 1, INF, -INF, NAN, np.finfo(dtype).smallest_subnormal], dtype)
    x = np.concatenate([x, x, np.repeat(ends, len(ends))])
    y = np.concatenate(
        [y, x[:2000] / rng.integers(1, 99, 2000).astype(dtype), np.tile(ends, len(ends))]
    )
    for name in ("fmod", "nextafter"):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x, y)
        found = getattr(ops, name)(c10.from_numpy(x), c10.from_numpy(y)).numpy()
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(
            np.signbit(found), np.signbit(expected) | (np.isnan(found) & np.signbit(found))
        )


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


def test_a_tensor_equals_itself_unless_it_holds_nan() -> None:
    for dtype in (c10.bool, c10.uint8, c10.int64, c10.float32, c10.complex64):
        x = aten.ones(3, dtype=dtype)
        assert aten.equal(x, x) and aten.equal(x, x.view(3)) and not aten.equal(x, x[1:])
    x = c10.tensor([1.0, NAN])
    assert not aten.equal(x, x) and not aten.equal(x.to(c10.complex64), x.to(c10.complex64))


@pytest.mark.parametrize("tier", ["0", "1", "2"])
def test_the_greatest_of_small_numbers_wherever_it_lies(tier):
    """Lanes of one and two bytes are folded by words, then within a word."""
    program = """
import numpy as np, argand_aten as aten
for dtype in (np.int8, np.uint8, np.int16, np.int32, bool):
    low, high = (0, 1) if dtype is bool else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    for n in (1, 7, 16, 33, 64, 129):
        down = aten.from_numpy(np.where(np.eye(n, dtype=bool), high, low).astype(dtype))
        up = aten.from_numpy(np.where(np.eye(n, dtype=bool), low, high).astype(dtype))
        assert (down.amax(1).numpy() == high).all() and (up.amin(1).numpy() == low).all(), (dtype, n)
        assert n == 1 or (down.amin(1).numpy() == low).all() and (up.amax(1).numpy() == high).all()
        assert dtype is not bool or down.any(1).all() and not up.all(1).any(), n
"""
    environment = {**os.environ, "ARGAND_CPU_TIER": tier}  # at most the processor's
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
