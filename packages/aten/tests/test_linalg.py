"""Factorizations by reconstruction, their errors, and what the generated tests of linear algebra do not reach."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
from argand_aten import ops

DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = (
    (3, 3),
    (5, 3),
    (3, 5),
    (2, 4, 4),
    (2, 1, 4, 2),
    (1, 1),
    (0, 3),
    (3, 0),
    (0, 2, 2),
    (40, 40),
)
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
    found = getattr(ops, name)(
        *[c10.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args], **kwargs
    )
    return [x.numpy() for x in found] if isinstance(found, tuple) else found.numpy()


def close(found: np.ndarray, expected: np.ndarray) -> None:
    single = found.dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(
        found, expected, rtol=0, atol=(2e-4 if single else 1e-11) * max(1, *found.shape[-2:])
    )


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
    parts = run("lu_unpack", lu.real.astype(np.int64), pivots)
    np.testing.assert_array_equal(parts[0], p.real)
    assert all(part.dtype == np.int64 for part in parts)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_lu_solve(shape, dtype):
    a, b = (
        matrix(shape, dtype) + 3 * np.eye(shape[-1], dtype=dtype),
        matrix((*shape[:-1], 2), dtype, 1),
    )
    lu, pivots = run("linalg_lu_factor", a)
    close(a @ run("linalg_lu_solve", lu, pivots, b), b)
    close(adjoint(a) @ run("linalg_lu_solve", lu, pivots, b, adjoint=True), b)
    close(run("linalg_lu_solve", lu, pivots, adjoint(b), left=False) @ a, adjoint(b))
    close(
        run("linalg_lu_solve", lu, pivots, adjoint(b), left=False, adjoint=True) @ adjoint(a),
        adjoint(b),
    )
    close(a @ run("lu_solve", b, lu, pivots), b)


@pytest.mark.parametrize("tier", ["0", "1", "2"])
def test_singular_triangles_make_infinities(tier):
    program = """
import argand_aten as aten, argand_c10 as c10
for dtype in (c10.float32, c10.float64):
    for n, columns in ((5, 1), (5, 3), (20, 5), (60, 60)):
        a = aten.ones(n, n, dtype=dtype).triu() + aten.eye(n, dtype=dtype) * n
        a[n // 2, n // 2] = 0
        b = aten.ones(n, columns, dtype=dtype)
        for left in (True, False):
            for t, upper in ((a, True), (a.mT.contiguous(), False)):
                x = aten.ops.linalg_solve_triangular(t, b if left else b.mT, upper=upper, left=left)
                rows = x if left else x.mT
                first = rows.flip(0) if upper == left else rows
                done = n - 1 - n // 2 if upper == left else n // 2
                assert first[:done].isfinite().all(), (dtype, n, columns, left, upper)
                assert first[done].isinf().all(), (dtype, n, columns, left, upper)
"""
    environment = {**os.environ, "ARGAND_CPU_TIER": tier}  # at most the processor's
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_pivots_need_a_dimension():
    with pytest.raises(RuntimeError, match="got pivots without dimensions"):
        aten.ops._pivots_sign(aten.tensor(1, dtype=c10.int32), c10.float32)


def test_lu_of_a_singular_matrix():
    lu, pivots = aten.lu(c10.from_numpy(np.ones((2, 2))))
    assert lu.tolist() == [[1, 1], [1, 0]] and pivots.tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="singular"):
        run("linalg_lu_factor", np.ones((2, 2)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_small_and_large_matrices(dtype):
    """Those of up to 16 rows are factored without LAPACK."""
    for n in (1, 2, 7, 15, 16, 17, 30):
        a = matrix((3, n, n), dtype, n)
        wide = a.astype(np.float64)
        found = run("linalg_det", a)
        assert found.dtype == a.dtype
        np.testing.assert_allclose(
            found, np.linalg.det(wide), rtol=1e-3 if dtype == "float32" else 1e-9
        )
        well = a + n * np.eye(n, dtype=dtype)[::-1]  # whose rows are exchanged
        close(run("linalg_inv", well) @ well, np.broadcast_to(np.eye(n, dtype=dtype), a.shape))
        right = matrix((3, n, 2), dtype, n + 1)
        close(well @ run("linalg_solve", well, right), right)
        close(run("linalg_solve", well, adjoint(right), left=False) @ well, adjoint(right))
        lu, pivots = run("linalg_lu_factor", well)
        close(adjoint(well) @ run("linalg_lu_solve", lu, pivots, right, adjoint=True), right)
        pivots[1, 0] = n + 1
        with pytest.raises(RuntimeError, match=f"got pivot {n + 1}, expected 1 to {n}"):
            run("linalg_lu_solve", lu, pivots, right)
        b = definite((3, n, n), dtype)
        lower = run("linalg_cholesky", b)
        close(lower @ adjoint(lower), b)
        np.testing.assert_array_equal(lower, np.tril(lower))
        close(run("linalg_cholesky", np.triu(b), upper=True), adjoint(lower))
        b[1, n // 2, n // 2] = -1
        np.testing.assert_array_equal(run("linalg_cholesky_ex", b)[1], [0, n // 2 + 1, 0])
        if n <= 16:  # LAPACK may overlook it
            b[1, n // 2, n // 2] = np.nan
            np.testing.assert_array_equal(run("linalg_cholesky_ex", b)[1], [0, n // 2 + 1, 0])
    assert np.isnan(run("linalg_det", np.array([[0, 1], [np.nan, 1]], dtype)))
    assert run("linalg_det", np.array([[0, 1], [0, 1]], dtype)) == 0
    assert run("linalg_lu_factor_ex", np.array([[0, 1], [0, 1]], dtype))[2] == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles_that_are_solved_by_halves(dtype):
    """Most of the rows of LU are exchanged, as the largest elements lie on the other diagonal."""
    n, k = 211, 70
    a = matrix((n, n), dtype) + 40 * np.eye(n, dtype=dtype)[::-1]
    b = matrix((n, k), dtype, 1)
    for part in (a, a[:, :130], a[:130]):
        p, lower, upper = run("linalg_lu", part)
        close(p @ lower @ upper, part)
        assert np.abs(lower).max() <= (1.5 if np.iscomplexobj(lower) else 1.0001)
    lu, pivots = run("linalg_lu_factor", a)
    assert len(set(pivots - np.arange(n))) > 1
    for right in (b, b[:, :1]):
        close(a @ run("linalg_lu_solve", lu, pivots, right), right)
        close(adjoint(a) @ run("linalg_lu_solve", lu, pivots, right, adjoint=True), right)
        close(run("linalg_lu_solve", lu, pivots, adjoint(right), left=False) @ a, adjoint(right))
    close(a @ run("linalg_inv", a), np.eye(n, dtype=dtype))
    for upper, left, unit in itertools.product((False, True), repeat=3):
        t = np.triu(a * 0.01 / n) if upper else np.tril(a * 0.01 / n)
        t[np.arange(n), np.arange(n)] = 1
        right = b if left else adjoint(b)
        x = run(
            "linalg_solve_triangular",
            t * (1 if unit else 2),
            right,
            upper=upper,
            left=left,
            unitriangular=unit,
        )
        if unit:
            close(t @ x if left else x @ t, right)
        else:
            close(2 * t @ x if left else x @ t * 2, right)
    a[:, 180:] = 0
    assert run("linalg_lu_factor_ex", a)[2] == 181


def test_errors():
    singular = np.array([np.eye(2), [[1.0, 2.0], [2.0, 4.0]]])
    for name, args in (
        ("linalg_inv", ()),
        ("linalg_solve", (np.ones((2, 2)),)),
        ("linalg_lu_factor", ()),
    ):
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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape, dtype):
    a = matrix(shape, dtype)
    for mode in ("reduced", "complete"):
        q, r = run("linalg_qr", a, mode)
        assert q.shape[-1] == r.shape[-2] == (shape[-2] if mode == "complete" else min(shape[-2:]))
        close(q @ r, a)
        close(
            adjoint(q) @ q,
            np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1])),
        )
        np.testing.assert_array_equal(np.tril(r, -1), np.zeros_like(r))
    empty, only = run("linalg_qr", a, "r")
    assert empty.shape == (0,)
    np.testing.assert_array_equal(only, run("linalg_qr", a)[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [s for s in SHAPES if s[-2] >= s[-1]])
def test_householder(shape, dtype):
    a = matrix(shape, dtype)
    reflectors, tau = run("geqrf", a)
    q = run("linalg_householder_product", reflectors, tau)
    close(q @ np.triu(reflectors)[..., : shape[-1], :], a)
    c = matrix((*shape[:-1], 2), dtype, 1)
    full = run("linalg_qr", a, "complete")[0]
    if shape[-1]:
        close(run("ormqr", reflectors, tau, c), full @ c)
        close(run("ormqr", reflectors, tau, adjoint(c), False, True), adjoint(c) @ adjoint(full))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd(shape, dtype):
    a = matrix(shape, dtype)
    k = min(shape[-2:])
    for full in (False, True):
        u, s, vh = run("linalg_svd", a, full)
        assert s.dtype == np.zeros(0, dtype).real.dtype
        assert u.shape[-1] == (shape[-2] if full else k) and vh.shape[-2] == (
            shape[-1] if full else k
        )
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a)
        close(
            adjoint(u) @ u,
            np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], u.shape[-1], u.shape[-1])),
        )
        close(
            vh @ adjoint(vh),
            np.broadcast_to(np.eye(vh.shape[-2]), (*shape[:-2], vh.shape[-2], vh.shape[-2])),
        )
        assert (np.diff(s) <= 0).all()
    u, s, v = run("svd", a)
    close((u * s[..., None, :]) @ adjoint(v), a)
    assert run("svd", a, compute_uv=False)[0].shape == (*shape[:-1], shape[-2])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_eigh(shape, dtype):
    a = matrix(shape, dtype)
    a = a + adjoint(a)
    for uplo in "LU":
        half = np.tril(a) if uplo == "L" else np.triu(a)
        w, v = run("linalg_eigh", half, uplo)
        close((v * w[..., None, :]) @ adjoint(v), a)
        assert (np.diff(w) >= 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_eig(shape, dtype):
    a = matrix(shape, dtype)
    w, v = run("linalg_eig", a)
    assert (
        w.dtype == v.dtype == (np.complex64 if dtype in ("float32", "complex64") else np.complex128)
    )
    close(a @ v, v * w[..., None, :])
    np.testing.assert_allclose(np.linalg.norm(v, axis=-2), np.ones(shape[:-1]), atol=1e-5)
    close(np.sort_complex(run("linalg_eigvals", a).round(3)), np.sort_complex(w.round(3)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss", None])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 4), (2, 5, 2)])
def test_lstsq(shape, driver, dtype):
    a, b = matrix(shape, dtype), matrix((*shape[:-1], 2), dtype, 1)
    x, residuals, rank, values = run("linalg_lstsq", a, b, driver=driver)
    close(x, np.linalg.pinv(a) @ b)
    if shape[-2] > shape[-1] and driver in ("gels", "gelsd", "gelss"):
        close(residuals, (np.abs(a @ x - b) ** 2).sum(-2))
    else:
        assert residuals.shape == (0,)
    assert (
        rank.shape == ((0,) if driver == "gels" else shape[:-2]) and (rank == min(shape[-2:])).all()
    )
    assert values.shape == (
        (*shape[:-2], min(shape[-2:])) if driver in ("gelsd", "gelss") else (0,)
    )
    vector = run("linalg_lstsq", a, b[..., 0], driver=driver)[0]
    close(vector, x[..., 0])


def test_lstsq_of_a_low_rank():
    a = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    b = np.array([1.0, 2.0, 3.0])
    for driver in ("gelsy", "gelsd", "gelss"):
        x, residuals, rank, _ = run("linalg_lstsq", a, b, driver=driver)
        np.testing.assert_allclose(x, [1.0, 1.0], atol=1e-12)
        assert rank == 1 and residuals.shape == (0,)
    with pytest.raises(RuntimeError, match="driver"):
        run("linalg_lstsq", a, b, driver="gesv")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [True, False])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 0)])
def test_ldl(shape, hermitian, dtype):
    a = matrix(shape, dtype)
    a = a + (adjoint(a) if hermitian else np.swapaxes(a, -1, -2))
    ld, pivots = run("linalg_ldl_factor", a, hermitian=hermitian)
    b = matrix((*shape[:-1], 2), dtype, 1)
    close(a @ run("linalg_ldl_solve", ld, pivots, b, hermitian=hermitian), b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1e-3, 0.1, 1.0, 3.0, 30.0])
def test_matrix_exp(size, dtype):
    """Against the eigenvectors of a normal matrix, for every degree and number of squarings."""
    a = matrix((4, 4), dtype)
    a = a - adjoint(a)  # i times Hermitian: exp is unitary
    a = (a * (size / np.abs(a).sum(-2).max())).astype(dtype)
    w, v = np.linalg.eigh(1j * a.astype(np.complex128))
    expected = (v * np.exp(-1j * w)) @ adjoint(v)
    close(run("linalg_matrix_exp", a), expected if dtype.startswith("complex") else expected.real)
    assert np.isnan(run("linalg_matrix_exp", np.full((2, 2), np.nan))).all()


def test_values_that_are_not_finite():
    for value in (np.nan, np.inf):
        bad = np.array([[value, 1.0, 2.0], [1.0, value, 1.0], [2.0, 1.0, 1.0]])
        for name in ("linalg_svd", "linalg_svdvals", "linalg_pinv", "linalg_eigvalsh"):
            with pytest.raises(c10.errors.LinAlgError, match="not finite"):
                run(name, bad)
        with pytest.raises(RuntimeError, match="expected finite"):
            run("linalg_eigvals", bad)


def test_ranks_and_bounds():
    a = np.diag([4.0, 2.0, 1e-3, 0.0])
    assert run("linalg_matrix_rank", a) == 3
    assert run("linalg_matrix_rank", a, 0.5) == 2
    assert run("linalg_matrix_rank", a, atol=3.0) == 1
    assert run("linalg_matrix_rank", a, rtol=0.4) == 2
    assert run("linalg_matrix_rank", a, np.array([0.5, 3.0])).tolist() == [2, 1]
    np.testing.assert_allclose(run("linalg_pinv", a, 0.01), np.diag([0.25, 0.5, 0, 0]))
    np.testing.assert_allclose(run("linalg_pinv", a), np.diag([0.25, 0.5, 1e3, 0]))
    assert run("linalg_cond", np.zeros((2, 2)), 1) == np.inf


def test_powers_and_products():
    a = matrix((3, 3), "float64")
    close(run("matrix_power", a, -3), np.linalg.matrix_power(a, -3))
    with pytest.raises(RuntimeError, match="square"):
        run("matrix_power", np.ones((2, 3)), 2)
    parts = [
        matrix(s, "float64", i) for i, s in enumerate([(5, 2), (2, 7), (7, 3), (3, 4), (4, 1)])
    ]
    found = ops.linalg_multi_dot([c10.from_numpy(p) for p in parts]).numpy()
    close(found, np.linalg.multi_dot(parts))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        ops.linalg_multi_dot([c10.from_numpy(parts[0]), c10.from_numpy(parts[0])])


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (2, 3, 4), (2, 3, 3)])
def test_results_lie_column_by_column(shape):
    a = c10.from_numpy(matrix(shape, "float64"))
    batch, m, n, b = (
        shape[:-2],
        shape[-2],
        shape[-1],
        c10.from_numpy(matrix((*shape[:-1], 2), "float64")),
    )
    found = [
        *ops.linalg_qr(a), ops.linalg_qr(a, "r")[1], *ops.linalg_svd(a)[::2], *ops.linalg_svd(a, False)[::2],
        ops.linalg_lu_factor(a)[0], ops.geqrf(a)[0],
    ]  # fmt: skip
    if m == n:
        p = c10.from_numpy(definite(shape, "float64"))
        right = c10.from_numpy(matrix((*batch, 2, n), "float64"))
        lu, pivots = ops.linalg_lu_factor(p)
        found += [
            ops.linalg_cholesky(p), ops.linalg_cholesky(p, upper=True), ops.linalg_inv(p), ops.linalg_solve(p, b),
            ops.linalg_eigh(p)[1], ops.linalg_eig(p)[1], ops.linalg_ldl_factor(p)[0], ops.cholesky_inverse(p),
            ops.linalg_solve_triangular(p, b, upper=True), ops.linalg_solve_triangular(p, right, upper=False, left=False),
            ops.linalg_lu_solve(lu, pivots, b),
        ]  # fmt: skip
        assert ops.linalg_solve(p, right, left=False).is_contiguous()
    solution = ops.linalg_lstsq(a, b)[0]  # in place of what LAPACK was given
    assert solution.stride()[-2:] == (1, max(m, n))
    for t in found:
        assert ops.transpose(t, -2, -1).is_contiguous() and not t._is_view(), (
            tuple(t.shape),
            t.stride(),
        )


def test_inverses_have_no_negative_zeros():
    assert not np.signbit(run("linalg_inv", np.eye(3))).any()
