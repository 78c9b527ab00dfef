"""Rows of a table whose gradient is sparse: the rows that were looked up alone."""

from __future__ import annotations

from typing import Any

import argand_aten as aten
from argand_autograd.function import Function
from argand_autograd.sparse.tensor import make
from argand_c10 import Tensor, int64

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["embedding"]


class _SparseEmbedding(Function):
    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool
    ) -> Tensor:
        ctx.save_for_backward(indices)
        ctx.rows, ctx.padding_idx, ctx.scaled = weight.shape[0], padding_idx, scale_grad_by_freq
        return aten.embedding(weight, indices)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        if ctx.scaled:
            raise RuntimeError(
                "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
            )
        rows = ctx.saved_tensors[0].reshape(-1).to(int64)
        values = grad.reshape(rows.shape[0], grad.shape[-1])
        if ctx.padding_idx >= 0:
            kept = aten.nonzero(rows != ctx.padding_idx)[:, 0]
            if kept.shape[0] < rows.shape[0]:
                rows, values = rows.index_select(0, kept), values.index_select(0, kept)
        return make(rows.unsqueeze(0), values, [ctx.rows, values.shape[1]]), None, None, None


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False
) -> Tensor:
    """`aten.embedding` with a gradient for `weight` of layout sparse_coo, an element for each index, doubles included."""
    result: Tensor = _SparseEmbedding.apply(weight, indices, padding_idx, scale_grad_by_freq)
    return result
