"""Variance and extreme values in Triton's interpreter against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from interpreter import REAL, run

from argand_aten_cuda.kernels import statistics as kernels

RNG = np.random.default_rng(0)
# x of (20, 300) as rows: n_inner, outer, inner, stride, UNIT, (BR, BN), pieces; the last two along the first dimension
ALONG_ROWS = [
    (20, 0, 300, 1, 1, (4, 128), 1),
    (20, 0, 300, 1, 1, (1, 64), 3),
    (4, 1200, 300, 1, 0, (8, 64), 2),
    (4, 1200, 300, 1, 3, (8, 64), 2),
    (20, 0, 300, 1, 1, (4, 512), 1),
]
ALONG_COLUMNS = [(300, 0, 1, 300, 2, (64, 16), 1), (300, 0, 1, 300, 2, (64, 8), 2)]


def cuts(n: int, block: int, pieces: int) -> tuple[int, int]:
    share = -(-n // pieces)
    piece = -(-share // block) * block
    return piece, -(-n // piece)


def variance(x: np.ndarray, rows: int, n: int, how: tuple, correction: int = 1) -> np.ndarray:
    n_inner, outer, inner, stride, unit, (br, bn), pieces = how
    piece, pieces = cuts(n, bn, pieces)
    out, parts = np.zeros(rows, x.dtype), np.zeros((2, pieces, rows))
    grid = (-(-rows // br), pieces)
    run(
        kernels.moments, grid, x, out, parts, rows, n, n_inner, outer, inner, stride, float(n - correction), piece, pieces,
        BR=br, BN=bn, UNIT=unit, ALIGNED=False, WHOLE=n <= bn, STEPS=2,
    )  # fmt: skip
    if pieces > 1:
        run(
            kernels.join_moments,
            (-(-rows // 4),),
            parts,
            out,
            rows,
            n,
            float(n - correction),
            piece,
            pieces,
            BR=4,
            BP=2,
        )
    return out


@pytest.mark.parametrize("how", ALONG_ROWS)
def test_variance_of_rows(how: tuple) -> None:
    x = (RNG.standard_normal((20, 300)) + 1000).astype("float32")
    np.testing.assert_allclose(
        variance(x, 20, 300, how), x.astype("float64").var(1, ddof=1), rtol=2e-7
    )


@pytest.mark.parametrize("how", ALONG_COLUMNS)
def test_variance_of_columns(how: tuple) -> None:
    x = RNG.standard_normal((20, 300)) - 50
    np.testing.assert_allclose(variance(x, 300, 20, how, 0), x.var(0), rtol=1e-13)


def test_variance_of_special_rows() -> None:
    how = (3, 0, 5, 1, 1, (4, 16), 1)
    x = np.array([[np.inf] * 5, [np.nan] + [1.0] * 4, [7.0] * 5], "float32")
    np.testing.assert_array_equal(variance(x, 3, 5, how), [np.nan, np.nan, 0])
    one = np.ones((2, 1), "float32")
    np.testing.assert_array_equal(
        variance(one, 2, 1, (2, 0, 1, 1, 1, (4, 16), 1)), [np.nan, np.nan]
    )  # 0 / 0
    np.testing.assert_array_equal(variance(x[2:], 1, 5, how, 7), [np.nan])
    np.testing.assert_array_equal(
        variance(np.array([[1, 2.0]]), 1, 2, (1, 0, 2, 1, 1, (4, 16), 1), 2), [np.inf]
    )


def extremes(
    x: np.ndarray, rows: int, n: int, how: tuple, smallest: bool
) -> tuple[np.ndarray, np.ndarray]:
    n_inner, outer, inner, stride, unit, (br, bn), pieces = how
    piece, pieces = cuts(n, bn, pieces)
    found, at, parts = (
        np.zeros(rows, x.dtype),
        np.zeros(rows, "int64"),
        np.zeros((2, pieces, rows), "int64"),
    )
    run(
        kernels.extreme, (-(-rows // br), pieces), x, found, at, parts, rows, n, n_inner, outer, inner, stride, piece, pieces,
        BR=br, BN=bn, UNIT=unit, ALIGNED=False, WHOLE=n <= bn, SMALLEST=smallest, VALUES=True,
    )  # fmt: skip
    if pieces > 1:
        run(
            kernels.join_extremes, (-(-rows // 4),), x, found, at, parts, rows, n_inner, outer, inner, stride, pieces,
            BR=4, BP=2, VALUES=True,
        )  # fmt: skip
    return found, at


def extreme_values(dtype: str) -> np.ndarray:
    x = RNG.integers(0, 90, (20, 300)).astype(dtype)
    if dtype == "int64":
        x = x * 2**55 - 2**61
    elif dtype != "uint8":
        x -= 45
    if dtype.startswith("float"):
        x[3, [100, 200]] = np.nan
        x[4], x[5], x[6] = -np.inf, np.inf, -0.0
        x[6, 3] = 0.0
    return x


@pytest.mark.parametrize("smallest", [False, True])
@pytest.mark.parametrize("dtype", REAL)
def test_first_extremes(dtype: str, smallest: bool) -> None:
    x = extreme_values(dtype)
    find = np.argmin if smallest else np.argmax
    for how in ALONG_ROWS[smallest::2]:
        few = x[: 8 if smallest else 20]  # where a row is a program, and more
        found, at = extremes(few, len(few), 300, how, smallest)
        np.testing.assert_array_equal(at, find(few, 1))
        np.testing.assert_array_equal(found, few[np.arange(len(few)), at])
    for how in ALONG_COLUMNS[smallest:]:
        found, at = extremes(x, 300, 20, how, smallest)
        np.testing.assert_array_equal(at, find(x, 0))
        np.testing.assert_array_equal(found, x[at, np.arange(300)])
