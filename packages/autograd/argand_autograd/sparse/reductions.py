"""Sums, norms and softmax over dimensions of sparse tensors."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_autograd.sparse.coordinates import coalesce, keys_of, summed
from argand_autograd.sparse.tensor import SparseTensor, implements, make
from argand_autograd.sparse.views import unsqueeze, wrap
from argand_c10 import Tensor

# Compilers run these functions as they are.
__argand_plain__ = True
__all__: list[str] = []


def _dims(self: Tensor, dim: Any) -> list[int]:
    given = [dim] if isinstance(dim, int) else list(dim)
    dims = [wrap(d, self.dim()) for d in given]
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"sum: got the dimensions {given}, expected each at most once")
    return dims


@implements("sum")
def total(
    self: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    values = self._values()
    dims = [] if dim is None else _dims(self, dim)
    if not dims or len(dims) == self.dim():
        total = aten.sum(values, dtype=dtype)
        return total.reshape([1] * self.dim()) if keepdim else total
    sparse = self.sparse_dim()
    inside = [d - sparse + 1 for d in dims if d >= sparse]
    if inside:
        values = aten.sum(values, inside, dtype=dtype)
    elif dtype is not None:
        values = values.to(dtype)
    kept = [d for d in range(sparse) if d not in dims]
    if not kept:
        result = aten.sum(values, 0)
        for d in sorted(dims) if keepdim else ():
            result = result.unsqueeze(d)
        return result
    indices = aten.stack([self._indices()[d] for d in kept])
    size = [n for d, n in enumerate(self.shape) if d not in dims]
    in_order = self.is_coalesced() and len(kept) == sparse
    summed_up = coalesce(make(indices, values, size, in_order))
    for d in sorted(dims) if keepdim else ():
        summed_up = unsqueeze(summed_up, d)
    return summed_up


@implements("norm")
def norm(
    self: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    if keepdim or (dim is not None and sorted(_dims(self, dim)) != list(range(self.dim()))):
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all dimensions "
            "of the input, without keepdim"
        )
    if dtype is not None:
        raise RuntimeError("norm: got a dtype, expected None for a sparse tensor")
    power = 2 if p in ("fro", None) else p
    return aten.norm(coalesce(self)._values().reshape(-1), power)


@implements("any")
def any_element(self: SparseTensor) -> Tensor:
    return aten.any(coalesce(self)._values())


def _softmax(self: SparseTensor, dim: int, dtype: Any, logarithm: bool) -> SparseTensor:
    """Over the elements that are there, as if all others were minus infinity."""
    x = coalesce(self)
    values = x._values() if dtype is None else x._values().to(dtype)
    dim, sparse = wrap(dim, self.dim()), self.sparse_dim()
    if dim >= sparse:
        operator = aten.log_softmax if logarithm else aten.softmax
        return x._like(operator(values, dim - sparse + 1))
    others = [d for d in range(sparse) if d != dim]
    rows = x._indices().index_select(
        0, aten.tensor(others, device=x.device, dtype=x._indices().dtype)
    )
    if others:
        keys, group = aten.unique(keys_of(rows, [x.shape[d] for d in others]), return_inverse=True)
        count = keys.shape[0]
    else:
        group, count = aten.zeros_like(x._indices()[0]), 1
    wide = group.reshape([-1] + [1] * (values.dim() - 1)).expand(values.shape)
    start = aten.full(
        [count, *values.shape[1:]], float("-inf"), dtype=values.dtype, device=x.device
    )
    greatest = aten.scatter_reduce(start, 0, wide, values.detach(), "amax")
    shifted = values - greatest.index_select(0, group)
    total = summed(aten.exp(shifted), group, count)
    if logarithm:
        return x._like(shifted - aten.log(total).index_select(0, group))
    return x._like(aten.exp(shifted) / total.index_select(0, group))


def softmax(self: SparseTensor, dim: int, dtype: Any = None) -> SparseTensor:
    return _softmax(self, dim, dtype, logarithm=False)


def log_softmax(self: SparseTensor, dim: int, dtype: Any = None) -> SparseTensor:
    return _softmax(self, dim, dtype, logarithm=True)
