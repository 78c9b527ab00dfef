"""Operators that move, choose, join or copy the elements of sparse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import argand_aten as aten
from argand_autograd.sparse.tensor import SparseTensor, implements, make, unsupported
from argand_c10 import Tensor, int64, strided

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["unsqueeze", "wrap"]


def wrap(dim: int, ndim: int) -> int:
    """A dimension counted from the front."""
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
        )
    return dim % ndim


# ---- order of dimensions --------------------------------------------------------------------------------
@implements("permute")
def permute(self: SparseTensor, *dims: Any) -> SparseTensor:
    given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [wrap(d, self.dim()) for d in given]
    sparse = self.sparse_dim()
    if sorted(order) != list(range(self.dim())):
        raise RuntimeError(
            f"permute: got the dimensions {list(given)}, expected each of {self.dim()} once"
        )
    if sorted(order[:sparse]) != list(range(sparse)):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed. Only transpositions "
            "within sparse and dense dimensions are supported."
        )
    if order == list(range(self.dim())):
        return make(self._indices(), self._values(), self.shape, self.is_coalesced())
    chosen = aten.tensor(order[:sparse], dtype=int64, device=self.device)
    indices = self._indices().index_select(0, chosen)
    values = self._values()
    if order[sparse:] != list(range(sparse, self.dim())):
        values = values.permute([0, *(d - sparse + 1 for d in order[sparse:])])
    in_order = self.is_coalesced() and order[:sparse] == list(range(sparse))
    return make(indices, values, [self.shape[d] for d in order], in_order)


@implements("transpose", "swapaxes", "swapdims")
def transpose(self: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    order = list(range(self.dim()))
    a, b = wrap(dim0, self.dim()), wrap(dim1, self.dim())
    order[a], order[b] = b, a
    return permute(self, order)


@implements("t", "adjoint")
def t(self: SparseTensor) -> SparseTensor:
    if self.sparse_dim() > 2 or self.dense_dim() > 0:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {self.sparse_dim()} sparse and "
            f"{self.dense_dim()} dense dimensions"
        )
    return self if self.dim() < 2 else transpose(self, 0, 1)


@implements("movedim", "moveaxis")
def movedim(self: SparseTensor, source: Any, destination: Any) -> SparseTensor:
    sources = [source] if isinstance(source, int) else list(source)
    targets = [destination] if isinstance(destination, int) else list(destination)
    pairs = {
        wrap(d, self.dim()): wrap(s, self.dim()) for s, d in zip(sources, targets, strict=True)
    }
    rest = iter(d for d in range(self.dim()) if d not in pairs.values())
    return permute(self, [pairs[d] if d in pairs else next(rest) for d in range(self.dim())])


@implements("unsqueeze")
def unsqueeze(self: SparseTensor, dim: int) -> SparseTensor:
    dim = wrap(dim, self.dim() + 1)
    size = [*self.shape[:dim], 1, *self.shape[dim:]]
    indices, values, sparse = self._indices(), self._values(), self.sparse_dim()
    if dim > sparse:
        return make(indices, values.unsqueeze(dim - sparse + 1), size, self.is_coalesced())
    row = aten.zeros_like(indices[:1]) if sparse else indices.new_zeros([1, self._nnz()])
    return make(aten.cat([indices[:dim], row, indices[dim:]]), values, size)


# ---- choice ---------------------------------------------------------------------------------------------
@implements("select")
def select(self: SparseTensor, dim: int, index: int) -> Tensor:
    dim = wrap(dim, self.dim())
    size, sparse = self.shape[dim], self.sparse_dim()
    if not -size <= index < size:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    index %= size
    shape = [n for d, n in enumerate(self.shape) if d != dim]
    indices, values = self._indices(), self._values()
    if dim >= sparse:
        return make(indices, values.select(dim - sparse + 1, index), shape, self.is_coalesced())
    chosen = aten.nonzero(indices[dim] == index)[:, 0]
    values = values.index_select(0, chosen)
    if sparse == 1:
        return values.sum(0, dtype=values.dtype)
    rest = aten.cat([indices[:dim], indices[dim + 1 :]]).index_select(1, chosen)
    return make(rest, values, shape, self.is_coalesced())


@implements("unbind")
def unbind(self: SparseTensor, dim: int = 0) -> tuple[Tensor, ...]:
    return tuple(select(self, dim, i) for i in range(self.shape[wrap(dim, self.dim())]))


@implements("narrow_copy")
def narrow_copy(self: SparseTensor, dim: int, start: int, length: int) -> SparseTensor:
    dim = wrap(dim, self.dim())
    start = start + self.shape[dim] if start < 0 else start
    if start < 0 or length < 0 or start + length > self.shape[dim]:
        raise RuntimeError(
            f"narrow_copy: got start {start} and length {length} for a dimension of size {self.shape[dim]}"
        )
    size = [length if d == dim else n for d, n in enumerate(self.shape)]
    indices, values, sparse = self._indices(), self._values(), self.sparse_dim()
    if dim >= sparse:
        part = values.narrow(dim - sparse + 1, start, length)
        return make(indices, part, size, self.is_coalesced())
    row = indices[dim]
    chosen = aten.nonzero((row >= start) & (row < start + length))[:, 0]
    moved = aten.stack(
        [
            r - start if d == dim else r
            for d, r in enumerate(indices.index_select(1, chosen).unbind(0))
        ]
    )
    return make(moved, values.index_select(0, chosen), size, self.is_coalesced())


@implements("index_select")
def index_select(self: SparseTensor, dim: int, index: Tensor) -> SparseTensor:
    dim = wrap(dim, self.dim())
    size = [index.numel() if d == dim else n for d, n in enumerate(self.shape)]
    indices, values, sparse = self._indices(), self._values(), self.sparse_dim()
    if dim >= sparse:
        return make(
            indices, values.index_select(dim - sparse + 1, index), size, self.is_coalesced()
        )
    index = aten.where(index < 0, index + self.shape[dim], index).to(int64)
    if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < self.shape[dim]:
        raise IndexError(
            f"index_select(): index out of range for dimension of size {self.shape[dim]}"
        )
    # The elements in order of their row; each new row takes those of the row that it names.
    order = aten.argsort(indices[dim], stable=True)
    rows = indices[dim].index_select(0, order).contiguous()
    begin = aten.searchsorted(rows, index)
    counts = aten.searchsorted(rows, index, right=True) - begin
    places = aten.arange(index.numel(), device=self.device)
    target = aten.repeat_interleave(places, counts)
    first = aten.cumsum(counts, 0) - counts
    offset = aten.arange(target.shape[0], device=self.device) - first.index_select(0, target)
    chosen = order.index_select(0, begin.index_select(0, target) + offset)
    taken = indices.index_select(1, chosen).unbind(0)
    moved = aten.stack([target if d == dim else row for d, row in enumerate(taken)])
    return make(moved, values.index_select(0, chosen), size)


@implements("__getitem__")
def getitem(self: Any, index: Any) -> Tensor:
    if not isinstance(self, SparseTensor):
        unsupported("index")
    parts = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [p for p in parts if not isinstance(p, Tensor)]:
        at = parts.index(Ellipsis)
        named = len([p for p in parts if p is not None]) - 1
        parts[at : at + 1] = [slice(None)] * (self.dim() - named)
    result: Tensor = self
    dim = 0
    for part in parts:
        if part is None:
            result, dim = result.unsqueeze(dim), dim + 1
        elif isinstance(part, int) and not isinstance(part, bool):
            result = result.select(dim, part)
        elif isinstance(part, slice) and part == slice(None):
            dim += 1
        else:
            unsupported("index", "index with integers, use index_select, or pass x.to_dense()")
    return result


# ---- joining --------------------------------------------------------------------------------------------
@implements("cat", "concat", "concatenate")
def cat(tensors: Sequence[Tensor], dim: int = 0) -> SparseTensor:
    parts: list[SparseTensor] = []
    for i, x in enumerate(tensors):
        if not isinstance(x, SparseTensor):
            raise RuntimeError(
                f"Concatenating sparse tensors, but a dense tensor was found at position {i}."
            )
        parts.append(x)
    first = parts[0]
    dim, sparse = wrap(dim, first.dim()), first.sparse_dim()
    others = [[n for d, n in enumerate(x.shape) if d != dim] for x in parts]
    if any(
        x.sparse_dim() != sparse or rest != others[0] for x, rest in zip(parts, others, strict=True)
    ):
        raise RuntimeError(
            f"cat: got sparse tensors of shapes {[list(x.shape) for x in parts]}, expected equal sizes but for dimension "
            f"{dim}, and as many sparse dimensions"
        )
    indices, values, begin = [], [], 0
    whole = sum(x.shape[dim] for x in parts)
    for x in parts:
        at, part = x._indices(), x._values()
        if dim < sparse:
            at = aten.stack(
                [row + begin if d == dim else row for d, row in enumerate(at.unbind(0))]
            )
        else:
            rest = whole - begin - x.shape[dim]
            padding = [0, 0] * (x.dim() - 1 - dim) + [begin, rest]
            part = aten.constant_pad_nd(part, padding)
        indices.append(at)
        values.append(part)
        begin += x.shape[dim]
    size = [whole if d == dim else n for d, n in enumerate(first.shape)]
    return make(aten.cat(indices, 1), aten.cat(values), size)


@implements("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> SparseTensor:
    return cat([x.unsqueeze(dim) for x in tensors], dim)


# ---- copies ---------------------------------------------------------------------------------------------
@implements("clone")
def clone(self: SparseTensor, *, memory_format: Any = None) -> SparseTensor:
    return make(self._indices().clone(), self._values().clone(), self.shape, self.is_coalesced())


@implements("detach", "alias")
def detach(self: SparseTensor) -> SparseTensor:
    return self._like(self._values().detach())


@implements("to", "_to_copy")
def to(self: Any, *args: Any, **kwargs: Any) -> Tensor:
    if not isinstance(self, SparseTensor):  # as what a sparse tensor is
        converted: Tensor = self.to(device=args[0].device, dtype=args[0].dtype)
        return converted
    args = tuple(a._values() if isinstance(a, SparseTensor) else a for a in args)
    values = self._values().to(*args, **kwargs)
    if values is self._values():
        return self
    indices = self._indices().to(values.device)
    indices = indices.clone() if kwargs.get("copy") else indices
    return make(indices, values, self.shape, self.is_coalesced())


@implements("copy_")
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    if not isinstance(self, SparseTensor) or not isinstance(src, SparseTensor):
        raise RuntimeError(
            f"copy_() between dense and sparse Tensors is not implemented! Found self type = {self.type()} and src type = "
            f"{src.type()}"
        )
    values = src._values().to(self.device, self.dtype).clone()
    copied = make(src._indices().to(self.device).clone(), values, src.shape, src.is_coalesced())
    return self._become(copied, resize=True)


@implements("zeros_like", "empty_like")
def zeros_like(
    self: SparseTensor, *, dtype: Any = None, layout: Any = None, device: Any = None, **_: Any
) -> Tensor:
    if layout == strided:
        return aten.zeros(self.shape, dtype=dtype or self.dtype, device=device or self.device)
    return _empty(self, self.shape, self.sparse_dim(), dtype, device)


@implements("new_zeros", "new_empty")
def new_zeros(
    self: SparseTensor, *size: Any, dtype: Any = None, device: Any = None, **_: Any
) -> Tensor:
    sizes = list(size[0]) if len(size) == 1 and not isinstance(size[0], int) else list(size)
    return _empty(self, sizes, len(sizes), dtype, device)


def _empty(like: Tensor, size: Sequence[int], sparse_dim: int, dtype: Any, device: Any) -> Tensor:
    device = like.device if device is None else device
    dtype = like.dtype if dtype is None else dtype
    indices = aten.zeros([sparse_dim, 0], dtype=int64, device=device)
    values = aten.zeros([0, *size[sparse_dim:]], dtype=dtype, device=device)
    return make(indices, values, size, coalesced=True)


@implements("zero_")
def zero_(self: SparseTensor) -> SparseTensor:
    empty: Any = zeros_like(self)
    return self._become(empty)


@implements("is_same_size")
def is_same_size(self: Tensor, other: Tensor) -> bool:
    return self.shape == other.shape


@implements("_foreach_mul_")
def foreach_mul_(self: Sequence[Tensor], other: Any) -> None:
    for x in self:
        x.mul_(other)
