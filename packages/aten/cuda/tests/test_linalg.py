"""Factors of small matrices and solutions with them, on an emulated CUDA device against the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emulated
import numpy as np
import pytest

if emulated.missing:
    pytest.skip(emulated.missing, allow_module_level=True)

import argand_aten as aten
import argand_c10 as c10

emulated.start()
RNG = np.random.default_rng(7)
ops: Any = aten.ops


def numbers(*shape: int, dtype: Any = c10.float64) -> Any:
    return c10.tensor(RNG.standard_normal(shape)).to(dtype)


def definite(*shape: int, dtype: Any = c10.float64) -> Any:
    x = numbers(*shape)
    return (x @ x.mT + aten.eye(shape[-1], dtype=c10.float64)).to(dtype)


def same(call: Callable[..., Any], *args: Any, rtol: float = 1e-9) -> None:
    """The same values and strides on both devices, by one of the kernels here."""
    emulated.launches.clear()
    got, expected = call(*(a.to("cuda") for a in args)), call(*args)
    emulated.check()
    names = ("lu_factor", "lu_solve", "cholesky_factor", "triangular_solve")
    assert any(name.startswith(names) for name in emulated.launches)
    pairs = [(got, expected)] if isinstance(got, c10.Tensor) else zip(got, expected, strict=True)
    for a, b in pairs:
        assert a.stride() == b.stride() and a.dtype == b.dtype and a.device.type == "cuda"
        np.testing.assert_allclose(a.to("cpu").numpy(), b.numpy(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("shape", [(5, 5), (3, 8, 8), (2, 2, 9, 9), (7, 4), (3, 20)])
def test_lu_factor(shape: tuple[int, ...]) -> None:
    same(lambda a: ops.linalg_lu_factor_ex(a), numbers(*shape))
    same(lambda a: ops.linalg_lu_factor_ex(a.mT), numbers(*shape))


def test_singular_matrices() -> None:
    a = numbers(3, 4, 4)
    a[1, :, 2] = 0.0
    got, expected = (ops.linalg_lu_factor_ex(x)[2].to("cpu") for x in (a.to("cuda"), a))
    assert got.tolist() == expected.tolist() and got[1].item() == 3
    for call in (ops.linalg_inv, lambda a: ops.linalg_solve(a, a)):
        with pytest.raises(RuntimeError, match=r"\(Batch element 1\): .*singular"):
            call(a.to("cuda"))


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(left: bool, adjoint: bool) -> None:
    lu, pivots, _ = ops.linalg_lu_factor_ex(numbers(1, 2, 6, 6))
    b = numbers(1, 2, 6, 21) if left else numbers(1, 2, 21, 6)

    def call(lu: Any, pivots: Any, b: Any) -> Any:
        return ops.linalg_lu_solve(lu, pivots, b, left=left, adjoint=adjoint)

    same(call, lu, pivots, b)
    same(call, lu.contiguous(), pivots, b.mT.contiguous().mT)


@pytest.mark.parametrize("dtype", [c10.float32, c10.float64])
def test_solutions_and_inverses(dtype: Any) -> None:
    rtol = 1e-3 if dtype == c10.float32 else 1e-9
    for n in (1, 3, 8) if dtype == c10.float32 else (3,):
        a, b = definite(2, n, n, dtype=dtype), numbers(2, n, 3, dtype=dtype)
        same(ops.linalg_inv, a, rtol=rtol)
        same(ops.linalg_det, a, rtol=rtol)
        same(ops.linalg_solve, a, b, rtol=rtol)
    same(ops.linalg_solve, definite(33, 33, dtype=dtype), numbers(33, 1, dtype=dtype), rtol=rtol)
    same(ops.linalg_solve, numbers(4, 4, dtype=dtype), numbers(4, dtype=dtype), rtol=rtol)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_solve_triangular(left: bool, upper: bool, unit: bool) -> None:
    for n in (5, 67) if left and not unit else (5,):
        t = numbers(3, n, n) / n + 3 * aten.eye(n, dtype=c10.float64)
        b = numbers(3, n, 3) if left else numbers(3, 3, n)
        same(
            lambda t, b: ops.linalg_solve_triangular(
                t, b, upper=upper, left=left, unitriangular=unit
            ),
            t,
            b,
        )


@pytest.mark.parametrize("upper", [True, False])
def test_cholesky(upper: bool) -> None:
    for shape in ((3, 3), (2, 2, 9, 9)):
        a = definite(*shape)
        same(lambda a: ops.linalg_cholesky_ex(a, upper=upper), a.triu() if upper else a.tril())
    bad = definite(2, 4, 4)
    bad[1, 2, 2] = -1.0
    same(lambda a: ops.linalg_cholesky_ex(a, upper=upper), bad)
    same(lambda a: ops.linalg_cholesky_ex(a, upper=upper), bad * 0)
    assert ops.linalg_cholesky_ex(bad.to("cuda"), upper=upper)[1].to("cpu").tolist() == [0, 3]
    with pytest.raises(RuntimeError, match="leading minor of order 3"):
        ops.linalg_cholesky(bad.to("cuda"), upper=upper)


@pytest.mark.parametrize("dtype", [c10.float32, c10.float64])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvalues(dtype: Any, uplo: str) -> None:
    rtol = 1e-4 if dtype == c10.float32 else 1e-10
    for shape in ((1, 1), (2, 5, 5), (9, 9)) if uplo == "L" else ((2, 5, 5),):
        a = numbers(*shape, dtype=dtype) * 1e3
        full = a.tril() + a.tril(-1).mT if uplo == "L" else a.triu() + a.triu(1).mT
        values, vectors = (t.to("cpu") for t in ops.linalg_eigh(a.to("cuda"), uplo))
        emulated.check()
        expected = ops.linalg_eigvalsh(a, uplo)
        scale = expected.abs().max().item()
        np.testing.assert_allclose(values.numpy(), expected.numpy(), atol=rtol * scale)
        only = ops.linalg_eigvalsh(a.to("cuda"), uplo).to("cpu")
        np.testing.assert_allclose(only.numpy(), values.numpy(), atol=rtol * scale)
        np.testing.assert_allclose(
            (full @ vectors).numpy(), (vectors * values.unsqueeze(-2)).numpy(), atol=rtol * scale
        )
        eye = (vectors.mT @ vectors).numpy()
        np.testing.assert_allclose(eye, np.broadcast_to(np.eye(shape[-1]), eye.shape), atol=rtol)
    same_values = ops.linalg_eigvalsh(aten.ones([4, 4], dtype=dtype, device="cuda")).to("cpu")
    np.testing.assert_allclose(same_values.numpy(), [0, 0, 0, 4], atol=1e-6)
    with pytest.raises(RuntimeError, match="eigh"):
        ops.linalg_eigh(aten.full([3, 3], float("nan"), dtype=dtype, device="cuda"))


@pytest.mark.parametrize("shape", [(1, 1), (2, 6, 6), (3, 9, 4), (2, 3, 8), (2, 2, 5, 5)])
def test_singular_values(shape: tuple[int, ...]) -> None:
    a = numbers(*shape, dtype=c10.float32) * 1e3
    emulated.launches.clear()
    expected = ops.linalg_svd(a, False)
    got = ops.linalg_svd(a.to("cuda"), False)
    only = ops.linalg_svdvals(a.to("cuda")).to("cpu")
    emulated.check()
    assert {n.split(";")[0] for n in emulated.launches} == {"svd_jacobi"}
    for g, e in zip(got, expected, strict=True):
        assert g.shape == e.shape and g.stride() == e.stride()
    u, s, vh = (t.to("cpu") for t in got)
    scale = s.max().item()
    for values in (s, only):
        np.testing.assert_allclose(values.numpy(), expected[1].numpy(), atol=1e-5 * scale)
    np.testing.assert_allclose((u * s.unsqueeze(-2) @ vh).numpy(), a.numpy(), atol=1e-5 * scale)
    for product in (u.mT @ u, vh @ vh.mT):
        eye = np.broadcast_to(np.eye(product.shape[-1]), product.shape)
        np.testing.assert_allclose(product.numpy(), eye, atol=1e-5)


def test_singular_values_of_zero_have_vectors_and_infinity_none() -> None:
    ones = aten.ones([3, 4, 4], device="cuda")
    u, s, _ = (t.to("cpu") for t in ops.linalg_svd(ones, True))
    np.testing.assert_allclose(s.numpy(), [[4, 0, 0, 0]] * 3, atol=1e-5)
    np.testing.assert_allclose((u.mT @ u).numpy(), np.stack([np.eye(4)] * 3), atol=1e-5)
    np.testing.assert_allclose(ops.linalg_svdvals(ones * 0).to("cpu").numpy(), np.zeros((3, 4)))
    for bad in (float("nan"), float("inf")):
        with pytest.raises(RuntimeError, match="not finite"):
            ops.linalg_svdvals(aten.full([3, 3], bad, device="cuda"))


@pytest.mark.parametrize("dtype", [c10.float32, c10.float64])
def test_matrix_exp(dtype: Any) -> None:
    rtol = 1e-3 if dtype == c10.float32 else 1e-9
    mixed = numbers(4, 5, 5, dtype=dtype)
    mixed[1] = mixed[1] * 1e-3
    mixed[2] = mixed[2] * 9
    mixed[3, 0, 0] = float("nan")
    cases = [numbers(4, 4, dtype=dtype), numbers(2, 2, 3, 3, dtype=dtype).mT * 0.1, mixed]
    for a in [*cases, numbers(1, 1, dtype=dtype) * 30, aten.zeros([2, 0, 0], dtype=dtype)]:
        expected, got = ops.linalg_matrix_exp(a), ops.linalg_matrix_exp(a.to("cuda"))
        emulated.check()
        assert got.device.type == "cuda" and got.stride() == expected.stride()
        want = expected.numpy()
        scale = np.nanmax(np.abs(want), initial=1)
        np.testing.assert_allclose(got.to("cpu").numpy(), want, rtol=rtol, atol=rtol * scale * 1e-2)


@pytest.mark.parametrize("dtype", [c10.float32, c10.float16, c10.int64, c10.complex64])
def test_cross(dtype: Any) -> None:
    x, y = ((numbers(2, 3, 4) * 3).to(dtype), (numbers(1, 3, 4) * 3).to(dtype))
    for call in (
        lambda x, y: ops.linalg_cross(x, y, dim=1),
        lambda x, y: ops.linalg_cross(x.mT, y.mT),
        lambda x, y: ops.linalg_cross(x[:0], y[:0], dim=1),
    ):
        emulated.launches.clear()
        got, expected = call(x.to("cuda"), y.to("cuda")), call(x, y)
        emulated.check()
        assert got.shape == expected.shape
        fused = any(n.startswith("cross;") for n in emulated.launches)
        assert fused == (not dtype.is_complex and got.numel() > 0)
        a, b = (t.to("cpu").to(c10.complex128).numpy() for t in (got, expected))
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def test_empty_matrices() -> None:
    for shape in ((0, 3, 3), (2, 0, 0)):
        x = aten.zeros(list(shape), device="cuda")
        assert ops.linalg_inv(x).shape == shape
        assert ops.linalg_cholesky(x).shape == shape
        assert ops.linalg_solve(x, x).shape == shape
    emulated.check()


@pytest.mark.parametrize(("shape", "n"), [((3,), 3), ((2, 2, 5), 9), ((4, 70), 70), ((2, 0), 3)])
def test_permutation_matrices(shape: tuple[int, ...], n: int) -> None:
    steps = np.arange(shape[-1])
    pivots = aten.tensor((steps + RNG.integers(0, n - steps, shape) + 1).astype("int32"))
    for dtype in (c10.float32, c10.float64):
        emulated.launches.clear()
        found = ops._pivots_to_permutation(pivots.to("cuda"), n, dtype)
        emulated.check()
        assert any(name.startswith("row_order") for name in emulated.launches)
        expected = ops._pivots_to_permutation(pivots, n, dtype)
        assert found.dtype == dtype and found.cpu().tolist() == expected.tolist()
