"""Making sparse tensors: `sparse_coo_tensor`, and the methods of strided tensors that give them or refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import argand_aten as aten
import argand_c10 as c10
from argand_autograd.sparse import coordinates
from argand_autograd.sparse.coordinates import check_bounds, keys_of, sparse_sizes
from argand_autograd.sparse.pointwise import Number, sparse_mask
from argand_autograd.sparse.products import smm, sspaddmm
from argand_autograd.sparse.tensor import SparseTensor, make
from argand_c10 import Tensor, int64

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["install", "invariants", "sparse_coo_tensor"]


class _Invariants:
    """Whether new tensors are checked where the call does not say."""

    checked = False


invariants = _Invariants()


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Sequence[int] | None = None,
    *,
    dtype: c10.dtype | None = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
    layout: Any = None,
) -> Tensor:
    """A tensor of layout sparse_coo, given by its elements; those with the same coordinates are added.

    Args:
        indices: coordinates (sparse dimensions, elements), integers.
        values: (elements, *dense dimensions).
        size: by default the smallest that holds all coordinates. `sparse_coo_tensor(size)` has no elements.
        dtype: of the values; by default their own.
        device: by default that of the values.
        pin_memory: accepted, without effect.
        requires_grad: whether the result is a leaf whose gradient is recorded.
        check_invariants: whether coordinates are looked at.
        is_coalesced: whether coordinates are in order and without doubles; by default that is not known.

    Raises:
        RuntimeError: shapes do not fit, or a coordinate lies outside of its dimension where that is checked.
    """
    if values is None:
        if size is None:
            size, indices = indices, None
        return _without_elements(size, dtype, device, requires_grad)
    values = _as_tensor(values, dtype, device)
    indices = _as_tensor(indices, None, values.device).to(int64)
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    values = values.reshape(1) if values.dim() == 0 else values
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{indices.shape[1]}, nnz from values: {values.shape[0]}"
        )
    check = invariants.checked if check_invariants is None else check_invariants
    size = _inferred(indices, values) if size is None else _fitting(size, indices, values)
    # A view of its own, so that gradients of the result are not those of the argument.
    values = values.detach() if requires_grad or not values.requires_grad else aten.alias(values)
    if check:
        check_bounds(indices, size[: indices.shape[0]])
    result = make(indices, values, size, bool(is_coalesced))
    if check and is_coalesced:
        keys = keys_of(indices, sparse_sizes(result))
        if bool((keys[1:] <= keys[:-1]).any()):
            raise RuntimeError(
                "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
            )
    return result.requires_grad_() if requires_grad else result


def _as_tensor(data: Any, dtype: Any, device: Any) -> Tensor:
    if isinstance(data, Tensor):
        return data.to(device=data.device if device is None else device, dtype=dtype or data.dtype)
    return c10.tensor(data, dtype=dtype, device=device)


def _without_elements(size: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    if size is None:
        raise TypeError("sparse_coo_tensor(): got no indices and values and no size")
    dtype = c10.get_default_dtype() if dtype is None else dtype
    values = aten.zeros([0], dtype=dtype, device=device)
    indices = aten.zeros([len(size), 0], dtype=int64, device=device)
    return make(indices, values.requires_grad_(requires_grad), size, coalesced=True)


def _inferred(indices: Tensor, values: Tensor) -> list[int]:
    if indices.numel() == 0:
        return [0] * indices.shape[0] + list(values.shape[1:])
    for dim, least in enumerate(indices.amin(1).tolist()):
        if least < 0:
            raise RuntimeError(f"found negative index {least} for dim {dim}")
    return [most + 1 for most in indices.amax(1).tolist()] + list(values.shape[1:])


def _fitting(size: Sequence[int], indices: Tensor, values: Tensor) -> list[int]:
    size, sparse, dense = list(size), indices.shape[0], values.dim() - 1
    if len(size) != sparse + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse}, "
            f"dense_dim = {dense}"
        )
    expected = [values.shape[0], *size[sparse:]]
    if list(values.shape) != expected:
        raise RuntimeError(
            f"values has incorrect size, expected {expected}, got {list(values.shape)}"
        )
    return size


# ---- methods of every tensor ----------------------------------------------------------------------------
def _to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Tensor:
    """The elements that are not 0, as a tensor of layout sparse_coo.

    Args:
        sparse_dim: how many of the first dimensions have coordinates; all by default.
        layout: sparse_coo, the only one there is.
        blocksize, dense_dim: for other layouts; None.
    """
    if layout not in (None, c10.sparse_coo) or blocksize is not None or dense_dim is not None:
        raise NotImplementedError(
            f"to_sparse: got layout {layout}, blocksize {blocksize} and dense_dim {dense_dim}, expected sparse_coo and None"
        )
    if not isinstance(self, SparseTensor):
        return coordinates.to_sparse(self, sparse_dim)
    if sparse_dim not in (None, self.sparse_dim()):
        raise RuntimeError(
            "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
        )
    return self


def _to_sparse_coo(self: Tensor) -> Tensor:
    """The elements that are not 0, as a tensor of layout sparse_coo."""
    return _to_sparse(self)


def _sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """The elements at the places of `mask`, a tensor of layout sparse_coo; also those that are 0."""
    if not isinstance(mask, SparseTensor):
        raise RuntimeError(
            f"sparse_mask: got a mask of layout {mask.layout}, expected sparse_coo; pass mask.to_sparse()"
        )
    return sparse_mask(self, mask)


def _smm(self: SparseTensor, mat: Tensor) -> Tensor:
    """`self @ mat` of a sparse and a dense matrix as a sparse one."""
    return smm(self, mat)


def _sspaddmm(
    self: SparseTensor, mat1: SparseTensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """beta * self + alpha * (mat1 @ mat2) with a sparse `mat1` and a dense `mat2`, sparse."""
    return sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _refusing(name: str, kind: type[Exception], expected: str) -> Callable[..., NoReturn]:
    def refuse(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise kind(f"{name} expected {expected} but got Strided; pass x.to_sparse()")

    refuse.__name__ = name
    refuse.__doc__ = f"Of tensors of layout sparse_coo alone: `SparseTensor.{name}`."
    return refuse


def _dense_dim(self: Tensor) -> int:
    """How many dimensions have all their elements."""
    return self.dim()


def _sparse_dim(self: Tensor) -> int:
    """How many dimensions have coordinates."""
    return 0


def install() -> None:
    """Put the methods onto `Tensor`; done once, when the package is imported."""
    coordinate = "sparse coordinate tensor layout"
    methods: dict[str, Any] = {
        "coalesce": _refusing("coalesce", RuntimeError, coordinate),
        "is_coalesced": _refusing("is_coalesced", RuntimeError, coordinate),
        "indices": _refusing("indices", RuntimeError, coordinate),
        "values": _refusing("values", RuntimeError, "sparse tensor layout"),
        "_indices": _refusing("_indices", NotImplementedError, coordinate),
        "_values": _refusing("_values", NotImplementedError, coordinate),
        "_nnz": _refusing("_nnz", NotImplementedError, coordinate),
        "dense_dim": _dense_dim,
        "sparse_dim": _sparse_dim,
        "to_sparse": _to_sparse,
        "to_sparse_coo": _to_sparse_coo,
        "resize_as_sparse_": _refusing("resize_as_sparse_", NotImplementedError, coordinate),
        "smm": _smm,
        "sparse_mask": _sparse_mask,
        "sparse_resize_": _refusing("sparse_resize_", NotImplementedError, coordinate),
        "sparse_resize_and_clear_": _refusing(
            "sparse_resize_and_clear_", NotImplementedError, coordinate
        ),
        "sspaddmm": _sspaddmm,
    }
    for name, method in methods.items():
        setattr(Tensor, name, method)
