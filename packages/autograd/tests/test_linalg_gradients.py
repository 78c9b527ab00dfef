"""Derivatives of linear algebra that the generated tests do not reach: complex matrices, vectors up to their phase, factors of a factorization."""

from __future__ import annotations

import numpy as np
import pytest

import argand_c10 as c10
from argand_aten import ops
from argand_autograd import grad, gradcheck, gradgradcheck


def matrix(shape: tuple[int, ...], dtype: str, seed: int = 0) -> c10.Tensor:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    values = x + 1j * rng.standard_normal(shape) if dtype == "complex128" else x
    return c10.from_numpy(values).requires_grad_(True)


def adjoint(x: c10.Tensor) -> c10.Tensor:
    return ops.conj(x.transpose(-2, -1))


def definite(x: c10.Tensor) -> c10.Tensor:
    return ops.matmul(x, adjoint(x)) + c10.from_numpy(np.eye(x.shape[-1]))


def weighted(x: c10.Tensor) -> c10.Tensor:
    """A real number that sees every element."""
    parts = ops.view_as_real(x) if "complex" in str(x.dtype) else x
    return (
        parts * c10.from_numpy(np.linspace(0.5, 1.5, parts.numel()).reshape(tuple(parts.shape)))
    ).sum()


def squares(x: c10.Tensor) -> c10.Tensor:
    return ops.real(x * ops.conj(x))


def projectors(v: c10.Tensor) -> c10.Tensor:
    """v_k v_k^H of each column: what a phase does not change."""
    columns = v.transpose(-2, -1).unsqueeze(-1)
    return ops.matmul(columns, adjoint(columns))


def of_svd(a: c10.Tensor, full: bool = False) -> c10.Tensor:
    u, s, vh = ops.linalg_svd(a, full)
    k = s.shape[-1]
    return (
        weighted(projectors(u[..., :k])) + weighted(projectors(adjoint(vh)[..., :k])) + weighted(s)
    )


def of_eigh(a: c10.Tensor) -> c10.Tensor:
    values, vectors = ops.linalg_eigh(a + adjoint(a))
    return weighted(projectors(vectors)) + weighted(values)


def of_eig(a: c10.Tensor) -> c10.Tensor:
    values, vectors = ops.linalg_eig(a)
    return weighted(squares(vectors)) + weighted(values)


SQUARE = {
    "cholesky": lambda a: weighted(ops.linalg_cholesky(definite(a))),
    "cholesky upper": lambda a: weighted(ops.linalg_cholesky(definite(a), upper=True)),
    "cholesky_solve": lambda a: weighted(ops.cholesky_solve(a, ops.linalg_cholesky(definite(a)))),
    "cholesky_solve upper": lambda a: weighted(
        ops.cholesky_solve(a, ops.linalg_cholesky(definite(a), upper=True), True)
    ),
    "cholesky_inverse": lambda a: weighted(ops.cholesky_inverse(ops.linalg_cholesky(definite(a)))),
    "solve": lambda a: (
        weighted(ops.linalg_solve(a, a[:, :2] * 2))
        + weighted(ops.linalg_solve(a, a[:2] * 3, left=False))
    ),
    "solve_triangular": lambda a: weighted(
        ops.linalg_solve_triangular(definite(a), a, upper=False)
    ),
    "inv": lambda a: weighted(ops.linalg_inv(a)),
    "det": lambda a: weighted(ops.linalg_det(a)),
    "slogdet": lambda a: sum(weighted(x) for x in ops.linalg_slogdet(a)),
    "lu": lambda a: sum(weighted(x) for x in ops.linalg_lu(a)[1:]),
    "lu_solve": lambda a: weighted(ops.linalg_lu_solve(*ops.linalg_lu_factor(a), a, adjoint=True)),
    "eigh": of_eigh,
    "eigvalsh": lambda a: weighted(ops.linalg_eigvalsh(a + adjoint(a))),
    "eig": of_eig,
    "eigvals": lambda a: weighted(ops.linalg_eigvals(a)),
    "matrix_exp": lambda a: weighted(ops.linalg_matrix_exp(a)),
    "matrix_power": lambda a: weighted(ops.matrix_power(a, -2)) + weighted(ops.matrix_power(a, 3)),
    "norms": lambda a: (
        ops.linalg_vector_norm(a)
        + ops.linalg_vector_norm(a, 3)
        + ops.linalg_matrix_norm(a, "nuc")
        + ops.linalg_matrix_norm(a, 1)
    ),
}
ANY = {
    "qr": lambda a: sum(weighted(x) for x in ops.linalg_qr(a)),
    "svd": of_svd,
    "svd with full matrices": lambda a: of_svd(a, True),
    "svdvals": lambda a: weighted(ops.linalg_svdvals(a)),
    "pinv": lambda a: weighted(ops.linalg_pinv(a)),
    "lstsq": lambda a: weighted(ops.linalg_lstsq(a, a[:, :2] * 2 + 1).solution),
    "lu": lambda a: sum(weighted(x) for x in ops.linalg_lu(a)[1:]),
    "fft": lambda a: (
        weighted(ops.fft_fft(a, 5))
        + weighted(ops.fft_ifftn(a, norm="ortho"))
        + ops.fft_hfft(a, 5).sin().sum()
        + ops.fft_irfft2(a).cos().sum()
    ),
}


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", SQUARE)
def test_square(name, dtype):
    assert gradcheck(SQUARE[name], (matrix((3, 3), dtype),))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 3, 3)])
@pytest.mark.parametrize("name", ANY)
def test_any_shape(name, shape, dtype):
    if len(shape) == 3 and name == "lstsq":
        shape = (3, 3)
    assert gradcheck(ANY[name], (matrix(shape, dtype),))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("loss", [of_svd, of_eigh, of_eig])
def test_second_derivatives(loss, dtype):
    assert gradgradcheck(loss, (matrix((3, 3), dtype),))


def floats(a: np.ndarray, dtype: str) -> c10.Tensor:
    return c10.from_numpy(a.astype(dtype)).requires_grad_(True)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_losses_of_phases_are_refused(dtype):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2, 4, 3)) + 1j * rng.standard_normal((2, 4, 3))
    tall, square = floats(values, dtype), floats(values[:, :3], dtype)
    for part in (0, 2):
        with pytest.raises(RuntimeError, match="phases of singular vectors"):
            weighted(ops.linalg_svd(tall, False)[part]).backward()
    with pytest.raises(RuntimeError, match="linalg_eigh_backward: .* phases of eigenvectors"):
        weighted(ops.linalg_eigh(square + adjoint(square))[1]).backward()
    with pytest.raises(RuntimeError, match="linalg_eig_backward: .* phases of eigenvectors"):
        weighted(ops.linalg_eig(square)[1]).backward()
    with pytest.raises(RuntimeError, match="phases of eigenvectors"):
        weighted(
            ops.linalg_eig(floats(np.array([[1.0, 2.0], [-3.0, 1.0]]), "float64"))[1]
        ).backward()
    symmetric = floats(np.array([[1.0, 2.0], [2.0, 3.0]]), "float64")
    weighted(
        ops.real(ops.linalg_eig(symmetric)[1])
    ).backward()  # real vectors have signs and no phases
    assert np.isfinite(symmetric.grad.numpy()).all()


@pytest.mark.parametrize("scale", [1.0, 1e8])
@pytest.mark.parametrize("loss", [of_svd, of_eigh, of_eig])
def test_losses_that_phases_do_not_change_may_be_large_in_complex64(loss, scale):
    rng = np.random.default_rng(0)
    a = floats(rng.standard_normal((20, 20)) + 1j * rng.standard_normal((20, 20)), "complex64")
    (loss(a) * scale).backward()
    assert np.isfinite(a.grad.numpy()).all()


def test_determinant_of_singular_matrices():
    """The adjugate, transposed."""
    a = c10.from_numpy(
        np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 5.0]])
    ).requires_grad_(True)
    ops.linalg_det(a).backward()
    minors = [
        [
            np.linalg.det(np.delete(np.delete(a.detach().numpy(), i, 0), j, 1)) * (-1) ** (i + j)
            for j in range(3)
        ]
        for i in range(3)
    ]
    np.testing.assert_allclose(a.grad.numpy(), minors, atol=1e-9)


@pytest.mark.parametrize("order", [1, 3, np.inf])
def test_second_derivatives_of_complex_norms_are_zero_at_zeros(order):
    a = floats(np.array([0, 1 + 1j, 2j]), "complex128")
    (g,) = grad(ops.linalg_vector_norm(a, order), a, create_graph=True)
    (h,) = grad(ops.view_as_real(g).sum(), a)
    assert h.numpy()[0] == 0 and np.isfinite(h.numpy()).all()


def test_what_is_not_differentiable():
    a = matrix((4, 3), "float64")
    for mode in ("complete", "r"):
        with pytest.raises(RuntimeError, match="not differentiable"):
            ops.linalg_qr(a, mode)[1].sum().backward()


def test_reflectors_have_no_derivative():
    a, tau = ops.geqrf(matrix((3, 3), "float64").requires_grad_())
    with pytest.raises(NotImplementedError, match="geqrf: the derivative"):
        (a.sum() + tau.sum()).backward()
