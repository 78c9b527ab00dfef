"""Factorizations by reconstruction, their errors, and what the generated tests of linear algebra do not reach."""

from __future__ import annotations

import numpy as np
import pytest

import argand_c10 as c10
from argand_aten import ops

DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = ((3, 3), (5, 3), (3, 5), (2, 4, 4), (2, 1, 4, 2), (1, 1), (0, 3), (3, 0), (0, 2, 2), (40, 40))
SQUARE = tuple(s for s in SHAPES if s[-1] == s[-2])


def matrix(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x).astype(dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def definite(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = matrix(shape, dtype)
    return (x @ adjoint(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)


def run(name: str, *args, **kwargs):
    found = getattr(ops, name)(*[c10.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args], **kwargs)
    return [x.numpy() for x in found] if isinstance(found, tuple) else found.numpy()


def close(found: np.ndarray, expected: np.ndarray) -> None:
    single = found.dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(found, expected, rtol=0, atol=(2e-4 if single else 1e-11) * max(1, *found.shape[-2:]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape, dtype):
    a = matrix(shape, dtype)
    p, lower, upper = run("linalg_lu", a)
    close(p @ lower @ upper, a)
    lu, pivots = run("linalg_lu_factor", a)
    assert pivots.dtype == np.int32 and lu.dtype == a.dtype
    close(np.triu(lu)[..., : min(shape[-2:]), :], upper)
    parts = run("lu_unpack", lu, pivots, unpack_data=False)
    np.testing.assert_array_equal(parts[0], p)
    assert parts[1].shape == parts[2].shape == (0,)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_lu_solve(shape, dtype):
    a, b = matrix(shape, dtype) + 3 * np.eye(shape[-1], dtype=dtype), matrix((*shape[:-1], 2), dtype, 1)
    lu, pivots = run("linalg_lu_factor", a)
    close(a @ run("linalg_lu_solve", lu, pivots, b), b)
    close(adjoint(a) @ run("linalg_lu_solve", lu, pivots, b, adjoint=True), b)
    close(run("linalg_lu_solve", lu, pivots, adjoint(b), left=False) @ a, adjoint(b))
    close(run("linalg_lu_solve", lu, pivots, adjoint(b), left=False, adjoint=True) @ adjoint(a), adjoint(b))
    close(a @ run("lu_solve", b, lu, pivots), b)


def test_errors():
    singular = np.array([np.eye(2), [[1.0, 2.0], [2.0, 4.0]]])
    for name, args in (("linalg_inv", ()), ("linalg_solve", (np.ones((2, 2)),)), ("linalg_lu_factor", ())):
        with pytest.raises(c10.errors.LinAlgError, match=r"Batch element 1.*singular"):
            run(name, singular, *args)
    with pytest.raises(c10.errors.LinAlgError, match="order 2 is not"):
        run("linalg_cholesky", np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert issubclass(c10.errors.LinAlgError, RuntimeError)
    assert run("linalg_cholesky_ex", -np.eye(2))[1] == 1
    np.testing.assert_array_equal(run("linalg_inv_ex", singular)[1], [0, 2])
    for name in ("linalg_inv", "linalg_det", "linalg_cholesky"):
        with pytest.raises(RuntimeError, match="square"):
            run(name, np.ones((2, 3)))
        with pytest.raises(RuntimeError, match="2 dimensions"):
            run(name, np.ones(2))
        with pytest.raises(RuntimeError, match="expected float32"):
            run(name, np.ones((2, 2), np.int64))
    with pytest.raises(RuntimeError, match="do not fit"):
        run("linalg_solve", np.eye(2), np.ones((3, 1)))
    with pytest.raises(RuntimeError, match="pivot"):
        run("linalg_lu_factor", np.eye(2), pivot=False)
    with pytest.raises(RuntimeError, match="got pivot 7"):
        run("linalg_lu_solve", np.eye(2), np.array([7, 2], np.int32), np.ones((2, 1)))
