"""Linear algebra of the standard's names and arguments."""

from __future__ import annotations

from typing import Any, NamedTuple

import argand
from argand import Tensor
from argand.array_api.elementwise import promoted
from argand.array_api.reductions import sum as _sum

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EigResult(NamedTuple):
    """Of a square matrix; complex."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """Of a symmetric matrix."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """x = Q R."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """det x = sign exp(logabsdet)."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """x = U diag(S) Vh."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of positive-definite matrices."""
    return argand.linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross products of vectors of three elements along `axis`, which counts from the end; all other dimensions are broadcast."""
    n = max(x1.ndim, x2.ndim)
    padded = (argand.reshape(x, (1,) * (n - x.ndim) + x.shape) for x in promoted(x1, x2))
    return argand.linalg.cross(*padded, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """Determinants."""
    return argand.linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices."""
    return argand.diagonal(x, offset, -2, -1)


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues and right eigenvectors of square matrices, complex for real ones too."""
    return EigResult(*argand.linalg.eig(x))


def eigvals(x: Tensor, /) -> Tensor:
    """Eigenvalues of square matrices, complex for real ones too."""
    return argand.linalg.eigvals(x)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return EighResult(*argand.linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric matrices."""
    return argand.linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """Inverses."""
    return argand.linalg.inv(x)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Matrix products."""
    return argand.matmul(*promoted(x1, x2))


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Norms of matrices; None is Frobenius's."""
    return argand.linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Powers of square matrices."""
    return argand.linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values are not small."""
    return argand.linalg.matrix_rank(x, rtol=rtol)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dimensions exchanged."""
    return x.mT


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of elements of two vectors."""
    return argand.outer(*promoted(x1, x2))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Pseudoinverses."""
    return argand.linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Orthogonal and triangular factors."""
    return QRResult(*argand.linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Signs and logarithms of determinants."""
    return SlogdetResult(*argand.linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Solutions of x1 y = x2; `x2` of one dimension is a vector."""
    x1, x2 = promoted(x1, x2)
    if x2.ndim == 1:
        return argand.linalg.solve(x1, x2[:, None])[..., 0]
    batch = argand.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return argand.linalg.solve(
        x1.expand([*batch, *x1.shape[-2:]]), x2.expand([*batch, *x2.shape[-2:]])
    )


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular values and vectors."""
    return SVDResult(*argand.linalg.svd(x, full_matrices=full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values."""
    return argand.linalg.svdvals(x)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """Sums of products over pairs of axes."""
    return argand.tensordot(*promoted(x1, x2), axes)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sums of diagonals."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Dot products along an axis, the first vectors conjugated; both arrays have the same size along it."""
    end = axis if axis < 0 else axis - max(x1.dim(), x2.dim())
    if x1.shape[end] != x2.shape[end]:
        raise ValueError(
            f"vecdot: got sizes {x1.shape[end]} and {x2.shape[end]} along axis {axis}, expected equal ones"
        )
    x1, x2 = argand.broadcast_tensors(*promoted(x1, x2))
    products = (
        argand.movedim(argand.conj(x1) if x1.is_complex() else x1, axis, -1),
        argand.movedim(x2, axis, -1),
    )
    return argand.matmul(products[0][..., None, :], products[1][..., None])[..., 0, 0]


def vector_norm(x: Tensor, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Norms of vectors; over no axes those of the elements."""
    if axis == ():
        return argand.linalg.vector_norm(x[..., None], ord, -1)
    return argand.linalg.vector_norm(x, ord, axis, keepdims)
