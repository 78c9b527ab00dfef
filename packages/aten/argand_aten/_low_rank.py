"""Parts of decompositions: a few singular values or eigenvalues, found by iteration."""

from __future__ import annotations

from typing import Any

from argand_aten._operators import ops
from argand_c10 import Tensor, finfo

__all__ = ["lobpcg", "pca_lowrank", "svd_lowrank"]


def _adjoint(x: Tensor) -> Tensor:
    turned = ops.transpose(x, -2, -1)
    return ops.conj(turned) if x.is_complex() else turned


def _matrices(name: str, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: got {type(x).__name__}, expected a Tensor")
    if x.ndim < 2:
        raise RuntimeError(
            f"{name}: got a tensor of shape {tuple(x.shape)}, expected matrices (at least 2 dimensions)"
        )
    return x


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The largest `q` singular values and vectors of matrices, approximately: A (or A - M) is about U diag(S) V^H.

    Args:
      A: matrices of sizes (..., m, n).
      q: how many; a few more than wanted make the wanted ones more precise.
      niter: subspace iterations.
      M: is subtracted from A, broadcast to its shape.

    Returns:
      U (..., m, q), S (..., q) and V (..., n, q). The method is random: seed it by manual_seed.

    Source: N. Halko, P. G. Martinsson, J. A. Tropp, Finding structure with randomness, SIAM Review 53 (2011), algorithms 4.4 and 5.1.
    """
    A = _matrices("svd_lowrank", A)
    q = 6 if q is None else q
    niter = 2 if niter is None else niter
    m, n = A.shape[-2], A.shape[-1]
    if M is not None:
        A = A - ops.expand(M, list(A.shape))
    tall = A if m >= n else _adjoint(A)
    wide = _adjoint(tall)
    probes = _random([*tall.shape[:-2], tall.shape[-1], q], A)
    basis = _orthonormal(ops.matmul(tall, probes))
    for _ in range(niter):
        basis = _orthonormal(ops.matmul(tall, _orthonormal(ops.matmul(wide, basis))))
    u, s, vh = ops.linalg_svd(ops.matmul(_adjoint(basis), tall), full_matrices=False)
    u, v = ops.matmul(basis, u), _adjoint(vh)
    return (u, s, v) if m >= n else (v, s, u)


def _random(sizes: list[int], like: Tensor) -> Tensor:
    """Normally distributed numbers in the dtype and on the device of `like`."""
    found: Tensor = ops.randn(sizes, dtype=like.dtype.to_real(), device=like.device)
    return ops.complex(found, ops.randn_like(found)) if like.is_complex() else found


def _orthonormal(x: Tensor) -> Tensor:
    found: Tensor = ops.linalg_qr(x)[0]
    return found


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Principal components: `svd_lowrank` of A with the mean of its rows taken away.

    Args:
      A: m samples of n features, (..., m, n).
      q: how many components; min(6, m, n) by default.
      center: whether to subtract the mean.
      niter: subspace iterations.

    Raises:
      ValueError: for q outside 0 to min(m, n) and negative niter.
    """
    A = _matrices("pca_lowrank", A)
    m, n = A.shape[-2], A.shape[-1]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(
            f"pca_lowrank: got q={q}, expected 0 to {min(m, n)}, the smaller size of the matrices"
        )
    if niter < 0:
        raise ValueError(f"pca_lowrank: got niter={niter}, expected a non-negative number")
    return svd_lowrank(A - ops.mean(A, [-2], True) if center else A, q, niter)


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) eigenvalues and eigenvectors of A x = e B x, by preconditioned conjugate gradients.

    Args:
      A: symmetric matrices (..., m, m).
      k: how many; by default the columns of X, or 1.
      B: positive-definite matrices (..., m, m); the identity by default.
      X: the start, (..., m, n) with n >= k.
      n: columns of a random start; k by default.
      iK: a preconditioner (..., m, m), near the inverse of A.
      niter: at most that many steps, 1000 by default; -1 for no limit.
      tol: relative residuals below it end the iteration; the square root of the dtype's epsilon by default.
      largest: the largest (True, the default) or the smallest eigenvalues.
      method: "basic" or "ortho"; both are the orthogonal method here.

    Returns:
      eigenvalues (..., k), the wanted ones first, and eigenvectors (..., m, k) with x^H B x = 1. Eigenvalues have gradients, eigenvectors none.

    Raises:
      ValueError: for matrices with fewer than 3 n rows.
      RuntimeError: for k below 1.
      AssertionError: for shapes that do not fit.

    Source: A. V. Knyazev, Toward the optimal preconditioned eigensolver, SIAM J. Sci. Comput. 23 (2001).
    """
    A = _matrices("lobpcg", A)
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: got method {method!r}, expected 'basic' or 'ortho'")
    m = A.shape[-1]
    if (
        A.shape[-2] != m
        or (B is not None and B.shape != A.shape)
        or (X is not None and X.shape[-2] != m)
    ):
        shapes = ", ".join(str(list(t.shape)) for t in (A, B, X) if t is not None)
        raise AssertionError(
            f"lobpcg: got shapes {shapes}, expected square A, B of the same shape, and X of as many rows"
        )
    if k is None:
        k = 1 if X is None else X.shape[-1]
    if k < 1:
        raise RuntimeError(f"lobpcg: got k={k}, expected at least one eigenpair")
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"lobpcg: got matrices of {m} rows for n={n} eigenpairs, expected at least 3 n; use linalg.eigh for all eigenvalues"
        )
    start = _random([*A.shape[:-2], m, n], A) if X is None else X
    tol = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    limit = 1000 if niter is None else niter
    batch = list(A.shape[:-2])

    def flat(x: Tensor | None) -> list[Tensor | None]:
        if x is None:
            return [None] * max(1, _count(batch))
        return list(ops.unbind(ops.reshape(x.detach(), [-1, *x.shape[-2:]]), 0))

    found = [
        _solve(a, b, x, p, limit, tol, largest is not False)
        for a, b, x, p in zip(flat(A), flat(B), flat(start), flat(iK), strict=True)
        if a is not None and x is not None
    ]
    vectors = ops.reshape(ops.stack(found), [*batch, m, n])
    vectors = ops.narrow(vectors, -1, 0, k)
    values = ops.sum(ops.conj(vectors) * ops.matmul(A, vectors), [-2])
    if B is not None:
        values = values / ops.sum(ops.conj(vectors) * ops.matmul(B, vectors), [-2])
    return ops.real(values) if values.is_complex() else values, vectors


def _count(sizes: list[int]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def _solve(
    a: Tensor,
    b: Tensor | None,
    x: Tensor,
    preconditioner: Tensor | None,
    limit: int,
    tol: float,
    largest: bool,
) -> Tensor:
    """Eigenvectors, the wanted eigenvalue's first: Rayleigh-Ritz on the span of them, their residuals and their last steps."""

    def times_b(v: Tensor) -> Tensor:
        return v if b is None else ops.matmul(b, v)

    def ritz(basis: Tensor) -> tuple[Tensor, Tensor]:
        """The wanted eigenvalues on a span, and their vectors' coordinates in the basis."""
        values, vectors = ops.linalg_eigh(ops.matmul(_adjoint(basis), ops.matmul(a, basis)))
        if largest:
            values, vectors = ops.flip(values, [-1]), ops.flip(vectors, [-1])
        return ops.narrow(values, 0, 0, n), ops.narrow(vectors, 1, 0, n)

    n = x.shape[1]
    norm_a = float(ops.linalg_norm(a))
    norm_b = 1.0 if b is None else float(ops.linalg_norm(b))
    basis = _b_orthonormal(x, times_b)
    values, coordinates = ritz(basis)
    x, step = ops.matmul(basis, coordinates), None
    while limit != 0:
        limit -= 1
        bx = times_b(x)
        residual = ops.matmul(a, x) - bx * values
        scale = ops.linalg_norm(x, dim=[0]) * (norm_a + ops.abs(values) * norm_b)
        if bool(ops.all(ops.le(ops.linalg_norm(residual, dim=[0]), tol * scale))):
            break
        if preconditioner is not None:
            residual = ops.matmul(preconditioner, residual)
        directions = residual if step is None else ops.cat([residual, step], 1)
        directions = directions - ops.matmul(x, ops.matmul(_adjoint(bx), directions))
        directions = _b_orthonormal(directions, times_b)
        directions = _b_orthonormal(
            directions - ops.matmul(x, ops.matmul(_adjoint(bx), directions)), times_b
        )
        basis = ops.cat([x, directions], 1)
        values, coordinates = ritz(basis)
        step = ops.matmul(directions, ops.narrow(coordinates, 0, n, directions.shape[1]))
        x = _b_orthonormal(ops.matmul(basis, coordinates), times_b, complete=True)
    return x


def _b_orthonormal(v: Tensor, times_b: Any, complete: bool = False) -> Tensor:
    """A basis of the span of v with v^H B v = 1; directions that are lost in rounding are left out, unless `complete` promises that there are none.

    Source: A. Stathopoulos, K. Wu, A block orthogonalization procedure with constant synchronization requirements, SIAM J. Sci. Comput. 23 (2002).
    """
    gram = ops.matmul(_adjoint(v), times_b(v))
    if complete:
        return _adjoint(
            ops.linalg_solve_triangular(ops.linalg_cholesky(gram), _adjoint(v), upper=False)
        )
    scale = ops.rsqrt(ops.clamp(ops.real(ops.diagonal(gram)), min=finfo(v.dtype).tiny))
    values, vectors = ops.linalg_eigh(gram * ops.unsqueeze(scale, 0) * ops.unsqueeze(scale, 1))
    kept = int(ops.sum(ops.gt(values, float(values[-1]) * finfo(v.dtype).eps * 10)))
    first = values.shape[0] - kept
    rotation = ops.narrow(vectors, 1, first, kept) * ops.rsqrt(ops.narrow(values, 0, first, kept))
    return ops.matmul(v, ops.unsqueeze(scale, 1) * rotation)
