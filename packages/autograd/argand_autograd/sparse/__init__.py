"""Sparse tensors: coordinates and values, operators on them, and gradients that are sparse."""

from __future__ import annotations

from argand_autograd.sparse import construct, pointwise, products, reductions, views  # noqa: F401  (they register operators)
from argand_autograd.sparse.construct import invariants, sparse_coo_tensor
from argand_autograd.sparse.embedding import embedding
from argand_autograd.sparse.tensor import SparseTensor

__all__ = ["SparseTensor", "embedding", "invariants", "sparse_coo_tensor"]

construct.install()
