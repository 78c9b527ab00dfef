"""Functions of sparse tensors: `torch.sparse`, and those of `torch` for products of sparse matrices."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import argand_aten as aten
from argand_autograd import sparse_coo_tensor
from argand_autograd.sparse import SparseTensor, invariants, products, reductions
from argand_c10 import Tensor
from argand_c10 import sparse_coo as _sparse_coo

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = [
    "addmm",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]


def _sparse(name: str, x: Any) -> SparseTensor:
    if not isinstance(x, SparseTensor):
        got = x.layout if isinstance(x, Tensor) else type(x).__name__
        raise RuntimeError(
            f"{name}: got {got}, expected a tensor of layout sparse_coo; pass x.to_sparse()"
        )
    return x


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`mat1 @ mat2`, of which one or both are sparse; sparse where both are."""
    return aten.mm(mat1, mat2)


def addmm(
    mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: complex = 1.0, alpha: complex = 1.0
) -> Tensor:
    """beta * mat + alpha * (mat1 @ mat2), with a sparse `mat1` or `mat2`."""
    return aten.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum over all or some dimensions; sparse where a dimension with coordinates is left.

    Args:
        input: a sparse tensor.
        dim: a dimension, or several.
        dtype: of the values, which are converted before they are added.
    """
    return reductions.total(_sparse("sparse.sum", input), dim, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The softmax along a dimension over the elements that are there, as if all others were minus infinity."""
    return reductions.softmax(_sparse("sparse.softmax", input), dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`."""
    return reductions.log_softmax(_sparse("sparse.log_softmax", input), dim, dtype)


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: complex = 1.0, alpha: complex = 1.0
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) at the places of the sparse `input` alone, with dense matrices."""
    x = _sparse("sampled_addmm", input).coalesce()
    rows, columns = x._indices().unbind(0)
    left, right = aten.index_select(mat1, 0, rows), aten.index_select(mat2, 1, columns)
    product = aten.sum(left * right.t(), 1)
    return x._like(x._values() * beta + product * alpha)


def spdiags(
    diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout: Any = None
) -> Tensor:
    """A sparse matrix from its diagonals.

    Args:
        diagonals: (diagonals, columns), or one in one dimension; entry j of a diagonal goes to column j.
        offsets: int64; 0 is the main diagonal, those above have positive numbers.
        shape: of the matrix.
        layout: None or sparse_coo.
    """
    if layout not in (None, _sparse_coo):
        raise ValueError(f"spdiags: got layout {layout}, expected sparse_coo")
    diagonals, offsets = aten.atleast_2d(diagonals), aten.atleast_1d(offsets)
    if diagonals.shape[0] != offsets.shape[0] or offsets.dim() != 1 or len(shape) != 2:
        raise RuntimeError(
            f"spdiags: got diagonals {list(diagonals.shape)}, offsets {list(offsets.shape)} and shape {tuple(shape)}, "
            "expected an offset for each diagonal, and two sizes"
        )
    if aten.unique(offsets).shape[0] != offsets.shape[0]:
        raise RuntimeError("spdiags: got an offset twice, expected different ones")
    columns = aten.arange(diagonals.shape[1], device=diagonals.device)
    columns = columns.expand(diagonals.shape)
    rows = columns - offsets.unsqueeze(1)
    inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    return sparse_coo_tensor(
        aten.stack([rows[inside], columns[inside]]), diagonals[inside], tuple(shape)
    )


class check_sparse_tensor_invariants:
    """Whether `sparse_coo_tensor` looks at coordinates where the call does not say: a context, a decorator, or `enable()`.

    Args:
        enable: True to look.
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self._saved: list[bool] = []

    @staticmethod
    def is_enabled() -> bool:
        """Whether coordinates are looked at."""
        return invariants.checked

    @staticmethod
    def enable() -> None:
        """Look at coordinates from now on."""
        invariants.checked = True

    @staticmethod
    def disable() -> None:
        """Do not look at coordinates from now on."""
        invariants.checked = False

    def __enter__(self) -> Self:
        self._saved.append(invariants.checked)
        invariants.checked = self.state
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        invariants.checked = self._saved.pop()

    def __call__(self, function: Any) -> Any:
        """`function`, called in this context."""

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return wrapper


# ---- names of `torch` ------------------------------------------------------------------------------------
spmm = dsmm = aten.mm


def hspmm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """`mat1 @ mat2` of a sparse and a dense matrix, as the rows that are not 0: one sparse dimension, one dense."""
    return products.hspmm(_sparse("hspmm", mat1), mat2)


hsmm = hspmm


def smm(input: Tensor, mat: Tensor) -> Tensor:
    """`input @ mat` of a sparse and a dense matrix as a sparse one."""
    return products.smm(_sparse("smm", input), mat)


def sspaddmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: complex = 1, alpha: complex = 1
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) with sparse `input` and `mat1` and dense `mat2`, sparse."""
    first, second = _sparse("sspaddmm", input), _sparse("sspaddmm", mat1)
    return products.sspaddmm(first, second, mat2, beta=beta, alpha=alpha)


saddmm = sspaddmm
