"""Products of matrices of which one or both are sparse."""

from __future__ import annotations

import argand_aten as aten
from argand_autograd.sparse.coordinates import coalesce, keys_of, keys_to_indices, summed
from argand_autograd.sparse.pointwise import Number
from argand_autograd.sparse.tensor import SparseTensor, implements, make
from argand_c10 import Tensor

# Compilers run these functions as they are.
__argand_plain__ = True
__all__: list[str] = []


def _check_matrices(name: str, a: Tensor, b: Tensor) -> None:
    for x in (a, b):
        if x.dim() != 2 or (x.is_sparse and x.sparse_dim() != 2):
            sparse = f" ({x.sparse_dim()} of them sparse)" if x.is_sparse else ""
            raise RuntimeError(
                f"{name}: matrices expected, got a tensor of {x.dim()} dimensions{sparse}"
            )
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"{name}: got shapes {list(a.shape)} and {list(b.shape)}, expected dim 0 of the second to have size {a.shape[1]}"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: got {a.dtype} and {b.dtype}, expected the same dtype of both; convert one of them"
        )


def _rows_times(indices: Tensor, values: Tensor, rows: int, dense: Tensor) -> Tensor:
    """(rows, k) of a sparse matrix (rows, n) by a dense (n, k)."""
    parts = values.unsqueeze(-1) * aten.index_select(dense, 0, indices[1])
    return summed(parts, indices[0], rows)


@implements("mm")
def mm(self: Tensor, mat2: Tensor) -> Tensor:
    _check_matrices("mm", self, mat2)
    if isinstance(self, SparseTensor):
        if isinstance(mat2, SparseTensor):
            return _sparse_times_sparse(self, mat2)
        keys_of(self._indices(), self.shape)
        return _rows_times(self._indices(), self._values(), self.shape[0], mat2)
    return mm(mat2.t(), self.t()).t()


def _sparse_times_sparse(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """Each element of `a` meets the row of `b` that its column names."""
    a, b = coalesce(a), coalesce(b)
    rows, columns = a._indices().unbind(0)
    inner = b._indices()[0].contiguous()
    begin = aten.searchsorted(inner, columns)
    counts = aten.searchsorted(inner, columns, right=True) - begin
    left = aten.repeat_interleave(aten.arange(a._nnz(), device=a.device), counts)
    first = aten.cumsum(counts, 0) - counts
    offset = aten.arange(left.shape[0], device=a.device) - first.index_select(0, left)
    right = begin.index_select(0, left) + offset
    products = a._values().index_select(0, left) * b._values().index_select(0, right)
    size = [a.shape[0], b.shape[1]]
    indices = aten.stack([rows.index_select(0, left), b._indices()[1].index_select(0, right)])
    return coalesce(make(indices, products, size))


@implements("mv")
def mv(self: Tensor, vec: Tensor) -> Tensor:
    if self.dim() != 2 or vec.dim() != 1:
        raise RuntimeError(
            f"mv: got {self.dim()} and {vec.dim()} dimensions, expected a matrix and a vector"
        )
    if isinstance(vec, SparseTensor):
        vec = vec.to_dense()
        if not isinstance(self, SparseTensor):
            return aten.mv(self, vec)
    return mm(self, vec.unsqueeze(1)).squeeze(1)


@implements("matmul")
def matmul(self: Tensor, other: Tensor) -> Tensor:
    if self.dim() == 2 and other.dim() == 2:
        return mm(self, other)
    if self.dim() == 2 and other.dim() == 1:
        return mv(self, other)
    if self.dim() == 1 and other.dim() == 2:
        return mv(other.t(), self)
    if self.dim() == 3 and other.dim() == 3:
        return bmm(self, other)
    if isinstance(other, SparseTensor) and other.dim() == 2 and not isinstance(self, SparseTensor):
        return mm(self.reshape(-1, self.shape[-1]), other).reshape(*self.shape[:-1], other.shape[1])
    raise RuntimeError(
        f"matmul: got shapes {list(self.shape)} and {list(other.shape)} of which one is sparse, expected matrices and "
        "vectors; expand is unsupported for sparse tensors"
    )


@implements("bmm")
def bmm(self: Tensor, mat2: Tensor) -> Tensor:
    if not isinstance(self, SparseTensor) or isinstance(mat2, SparseTensor):
        raise NotImplementedError(
            f"bmm: got layouts {self.layout} and {mat2.layout}, expected a sparse and a strided tensor"
        )
    batches, rows, inner = self.shape
    if self.sparse_dim() != 3 or mat2.dim() != 3 or tuple(mat2.shape[:2]) != (batches, inner):
        raise RuntimeError(
            f"bmm: got shapes {list(self.shape)} and {list(mat2.shape)}, expected batches of matrices that fit"
        )
    batch, row, column = self._indices().unbind(0)
    indices = aten.stack([batch * rows + row, batch * inner + column])
    flat = mat2.reshape(batches * inner, mat2.shape[2])
    return _rows_times(indices, self._values(), batches * rows, flat).reshape(
        batches, rows, mat2.shape[2]
    )


@implements("addmm")
def addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    if isinstance(self, SparseTensor):
        raise RuntimeError(
            "addmm: got a sparse tensor to add to, expected a strided one; pass x.to_dense()"
        )
    product = mm(mat1, mat2)
    if isinstance(product, SparseTensor):
        product = product.to_dense()
    product = product if alpha == 1 else product * alpha
    return self.expand(product.shape) * beta + product if beta != 1 else self + product


@implements("linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    result = matmul(input, weight.t())
    return result if bias is None else bias + result


def smm(self: SparseTensor, mat2: Tensor) -> SparseTensor:
    product = mm(self, mat2)
    rows = aten.unique(self._indices()[0])
    values = product.index_select(0, rows).reshape(-1)
    columns = product.shape[1]
    keys = (rows.unsqueeze(1) * columns + aten.arange(columns, device=rows.device)).reshape(-1)
    return make(keys_to_indices(keys, product.shape), values, product.shape)


def sspaddmm(
    self: SparseTensor, mat1: SparseTensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> SparseTensor:
    product = smm(mat1, mat2)
    return make(
        aten.cat([self._indices(), product._indices()], 1),
        aten.cat([self._values() * beta, product._values() * alpha]),
        self.shape,
    )


def hspmm(mat1: SparseTensor, mat2: Tensor) -> SparseTensor:
    product = mm(mat1, mat2)
    rows = aten.unique(mat1._indices()[0])
    return make(rows.unsqueeze(0), product.index_select(0, rows), product.shape)
