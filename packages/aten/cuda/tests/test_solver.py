"""Decompositions of larger matrices by the stand-in for cuSOLVER, on an emulated CUDA device against the CPU's LAPACK."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10
from argand_aten_cuda import libraries

emulated.start()
RNG = np.random.default_rng(11)
on_cpu: list[str] = []  # operators that ran there


def _run_on_cpu(op: Any, *args: Any, **kwargs: Any) -> Any:
    on_cpu.append(op.name)
    return c10.run_on_cpu(op, *args, **kwargs)


c10.register_fallback("cuda", _run_on_cpu)
DTYPES = [c10.float32, c10.float64, c10.complex64, c10.complex128]
ops: Any = aten.ops


def numbers(*shape: int, dtype: Any = c10.float64) -> Any:
    x = RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)
    return c10.tensor(x if dtype in DTYPES[2:] else x.real.copy()).to(dtype)


def side_of(dtype: Any) -> int:
    """Rows that are the library's: real matrices of up to 64 are factored by kernels of our own."""
    return 66 if dtype in DTYPES[:2] else 33


def tolerance_of(dtype: Any) -> float:
    return 2e-3 if dtype in (c10.float32, c10.complex64) else 1e-9


def computed(call: Callable[..., Any], *args: Any) -> list[tuple[Any, Any]]:
    """The results on the emulated device, whose decompositions must be its own, beside the CPU's, with the same strides."""
    on_cpu.clear()
    got = call(*(a.to("cuda") for a in args))
    emulated.check()
    assert not [
        name
        for name in on_cpu
        if "lu" in name or "triangular" in name or "qr" in name or "linalg" in name
    ]
    expected = call(*args)
    several = not isinstance(got, c10.Tensor)
    pairs = list(zip(got, expected, strict=True)) if several else [(got, expected)]
    for a, b in pairs:
        assert a.stride() == b.stride() and a.shape == b.shape and a.dtype == b.dtype
        assert a.device.type == "cuda"
    return [(a.to("cpu").numpy(), b.numpy()) for a, b in pairs]


def same(call: Callable[..., Any], *args: Any) -> None:
    rtol = tolerance_of(args[0].dtype)
    for a, b in computed(call, *args):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, np.abs(b).max(initial=0)))


def test_version() -> None:
    assert libraries.version("cusolver") == 120102 and libraries.version("cublas") == 130102


@pytest.mark.parametrize("dtype", DTYPES)
def test_lu(dtype: Any) -> None:
    n = side_of(dtype)
    same(lambda a: ops.linalg_lu_factor_ex(a), numbers(n, n, dtype=dtype))
    same(lambda a: ops.linalg_lu_factor_ex(a.mT), numbers(n, n + 3, dtype=dtype))
    same(lambda a: ops.linalg_lu_factor_ex(a), numbers(1, n, 5, dtype=dtype))


def test_many_matrices_are_the_cpus() -> None:
    on_cpu.clear()
    with pytest.warns(UserWarning, match="has no kernel for 'cuda'"):
        ops.linalg_qr(numbers(2, 34, 34).to("cuda"))
    assert on_cpu == ["_linalg_qr"]


@pytest.mark.parametrize("batch", [(), (2,)])
def test_lu_without_row_exchanges(batch: tuple[int, ...]) -> None:
    a = numbers(*batch, 33, 33) + 30 * aten.eye(33, dtype=c10.float64)
    lu, pivots, info = (x.to("cpu") for x in ops.linalg_lu_factor_ex(a.to("cuda"), pivot=False))
    assert pivots.reshape(-1, 33).tolist() == [list(range(1, 34))] * info.numel()
    assert not info.numpy().any()
    lower, upper = lu.tril(-1) + aten.eye(33, dtype=c10.float64), lu.triu()
    np.testing.assert_allclose((lower @ upper).numpy(), a.numpy(), atol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_several_matrices_are_factored_by_one_call(dtype: Any) -> None:
    n = side_of(dtype)
    a = numbers(3, 2, n, n, dtype=dtype) + 9 * aten.eye(n, dtype=dtype)
    same(lambda a: ops.linalg_lu_factor_ex(a), a)
    same(lambda a: ops.linalg_lu_factor_ex(a.mT), a)
    same(ops.linalg_inv, a)
    same(ops.linalg_solve, a, numbers(3, 2, n, 4, dtype=dtype))
    same(ops.linalg_slogdet, a)
    lu, pivots, _ = ops.linalg_lu_factor_ex(a)
    for left in (True, False):
        for adjoint in (True, False):
            b = numbers(3, 2, n, 3, dtype=dtype)
            same(
                lambda *t, how=(left, adjoint): ops.linalg_lu_solve(
                    *t, left=how[0], adjoint=how[1]
                ),
                lu,
                pivots,
                b if left else b.mT,
            )
    a[1, 0, :, 2] = 0.0
    assert ops.linalg_lu_factor_ex(a.to("cuda"))[2].to("cpu").tolist() == [[0, 0], [3, 0], [0, 0]]


@pytest.mark.parametrize(("n", "dtype"), [(260, c10.float32), (273, c10.float64)])
def test_several_larger_matrices_are_factored_by_panels(n: int, dtype: Any) -> None:
    a = numbers(3, n, n, dtype=dtype)
    a[1, :, 20] = 0.0  # singular: a column of zeros, whatever came before
    emulated.launches.clear()
    (lu, found), (pivots, expected), (info, _) = computed(lambda a: ops.linalg_lu_factor_ex(a), a)
    assert [name for name in emulated.launches if name.startswith("lu_panel")]
    np.testing.assert_array_equal(pivots[::2], expected[::2])
    tolerance = tolerance_of(dtype)
    np.testing.assert_allclose(lu[::2], found[::2], rtol=tolerance, atol=tolerance * 30)
    assert info.tolist() == [0, 21, 0]
    for order, part, matrix in zip(pivots, lu, a.numpy(), strict=True):
        rows = np.arange(n)
        for k, p in enumerate(order):
            rows[[k, p - 1]] = rows[[p - 1, k]]
        product = (np.tril(part, -1) + np.eye(n)) @ np.triu(part)
        np.testing.assert_allclose(product, matrix[rows], atol=tolerance)


@pytest.mark.parametrize("left", [True, False])
def test_several_larger_systems_are_solved_by_blocks(left: bool) -> None:
    n = 260
    a = numbers(3, n, n)
    lu, pivots, _ = ops.linalg_lu_factor_ex(a)
    for adjoint in (True, False):
        b = numbers(3, n, 5)
        emulated.launches.clear()
        same(
            lambda *t, how=adjoint: ops.linalg_lu_solve(*t, left=left, adjoint=how),
            lu,
            pivots,
            b if left else b.mT,
        )
        assert [name for name in emulated.launches if name.startswith("row_order")]


def test_threads_that_end_give_their_handles_back() -> None:
    made = ctypes.CDLL(os.environ["ARGAND_CUBLAS_LIBRARY"]).fakeCublasHandles
    t = (numbers(66, 66) + 9 * aten.eye(66, dtype=c10.float64)).to("cuda")

    def solve() -> None:
        ops.linalg_solve_triangular(t, t, upper=True)

    def in_threads() -> None:
        for _ in range(5):
            thread = threading.Thread(target=solve)
            thread.start()
            thread.join()
            while os.path.exists(f"/proc/self/task/{thread.native_id}"):  # C++ is not done yet
                time.sleep(0.001)

    in_threads()
    before = made()
    in_threads()
    assert made() == before > 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(dtype: Any, left: bool, adjoint: bool) -> None:
    n = side_of(dtype)
    lu, pivots, _ = ops.linalg_lu_factor_ex(numbers(n, n, dtype=dtype))
    b = numbers(n, 3, dtype=dtype) if left else numbers(3, n, dtype=dtype)
    same(lambda *a: ops.linalg_lu_solve(*a, left=left, adjoint=adjoint), lu, pivots, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_inverses_and_determinants(dtype: Any) -> None:
    n = side_of(dtype)
    a = numbers(n, n, dtype=dtype) + 9 * aten.eye(n, dtype=dtype)
    same(ops.linalg_inv, a)
    same(ops.linalg_solve, a, numbers(n, 4, dtype=dtype))
    same(ops.linalg_solve, a.mT, numbers(n, dtype=dtype))
    same(ops.linalg_slogdet, a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_systems(dtype: Any, upper: bool, left: bool, unit: bool) -> None:
    n = side_of(dtype)
    t = numbers(1, n, n, dtype=dtype) / n + 3 * aten.eye(n, dtype=dtype)
    b = numbers(1, n, 5, dtype=dtype) if left else numbers(1, 5, n, dtype=dtype)
    how = {"upper": upper, "left": left, "unitriangular": unit}
    same(lambda t, b: ops.linalg_solve_triangular(t, b, **how), t, b)
    same(lambda t, b: ops.linalg_solve_triangular(t.mT, b, **how), t, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [True, False])
def test_cholesky(dtype: Any, upper: bool) -> None:
    n = side_of(dtype)
    x = numbers(n, n, dtype=dtype)
    a = x @ x.mH + aten.eye(n, dtype=dtype)
    # The other triangle is not read.
    same(lambda a: ops.linalg_cholesky_ex(a, upper=upper), a.triu() if upper else a.tril())
    a[2, 2] = -1.0
    assert ops.linalg_cholesky_ex(a.to("cuda"), upper=upper)[1].to("cpu").item() == 3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [(34, 34), (35, 5), (5, 35), (1, 36, 3)])
def test_qr(dtype: Any, mode: str, shape: tuple[int, ...]) -> None:
    a = numbers(*shape, dtype=dtype)
    pairs = computed(lambda a: ops.linalg_qr(a, mode), a)
    k, atol = min(shape[-2:]), 20 * tolerance_of(dtype)
    np.testing.assert_allclose(*pairs[1], atol=atol)  # LAPACK's signs
    if mode != "r":
        q = pairs[0][0]
        np.testing.assert_allclose(q[..., :k], pairs[0][1][..., :k], atol=atol)
        eye = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1]))
        np.testing.assert_allclose(q.conj().swapaxes(-1, -2) @ q, eye, atol=atol)
        np.testing.assert_allclose(q @ pairs[1][0], a.numpy(), atol=atol)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reflectors(dtype: Any) -> None:
    a = numbers(33, 7, dtype=dtype)
    same(lambda a: ops.geqrf(a), a)
    reflectors, tau = ops.geqrf(a)
    same(ops.linalg_householder_product, reflectors, tau)
    for left in (True, False):
        for transposed in (True, False):
            c = numbers(33, 4, dtype=dtype) if left else numbers(4, 33, dtype=dtype)
            same(lambda *t, f=(left, transposed): ops.ormqr(*t, *f), reflectors, tau, c)


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("shape", [(33, 33), (34, 4), (4, 34)])
def test_least_squares(dtype: Any, shape: tuple[int, int]) -> None:
    a, b = numbers(*shape, dtype=dtype), numbers(shape[0], 3, dtype=dtype)
    same(lambda a, b: ops.linalg_lstsq(a, b, driver="gels"), a, b)
    usual = ops.linalg_lstsq(a.to("cuda"), b.to("cuda"))
    assert usual[2].shape == (0,)  # as the driver gels, the only one there


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvalues(dtype: Any, uplo: str) -> None:
    n = 33
    a = numbers(n, n, dtype=dtype)
    atol = 30 * tolerance_of(dtype)
    half = a.tril(-1) if uplo == "L" else a.triu(1)
    full = (half + half.mH + aten.diag(aten.real(a.diagonal())).to(dtype)).numpy()
    (values, expected), (vectors, _) = computed(lambda a: ops.linalg_eigh(a, uplo), a)
    np.testing.assert_allclose(values, expected, atol=atol)
    np.testing.assert_allclose(full @ vectors, vectors * values, atol=atol)
    np.testing.assert_allclose(vectors.conj().T @ vectors, np.eye(n), atol=atol)
    same(lambda a: ops.linalg_eigvalsh(a, uplo), a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(33, 33), (35, 5), (5, 35)])
def test_singular_values(dtype: Any, full: bool, shape: tuple[int, int]) -> None:
    a = numbers(*shape, dtype=dtype)
    atol, k = 30 * tolerance_of(dtype), min(shape)
    (u, _), (s, expected), (vh, _) = computed(lambda a: ops.linalg_svd(a, full), a)
    np.testing.assert_allclose(s, expected, atol=atol)
    np.testing.assert_allclose(u[:, :k] * s @ vh[:k], a.numpy(), atol=atol)
    np.testing.assert_allclose(u.conj().T @ u, np.eye(u.shape[1]), atol=atol)
    np.testing.assert_allclose(vh @ vh.conj().T, np.eye(vh.shape[0]), atol=atol)
    np.testing.assert_allclose(ops.linalg_svdvals(a.to("cuda")).to("cpu").numpy(), s, atol=atol)
