"""Rules of products of matrices, and of linear algebra."""

from __future__ import annotations

import math
from typing import Any

import argand_aten as aten
from argand_autograd.batching.level import Level
from argand_autograd.batching.rules import named, pointwise, register
from argand_autograd.batching.shapes import fronted
from argand_c10 import Tensor

# Compilers run these functions as they are.
__argand_plain__ = True
__all__: list[str] = []

ops = aten.ops

register(fronted(), "linalg_cholesky_ex", "linalg_lu_factor_ex", "_pivots_to_permutation", "linalg_inv_ex", "geqrf", "linalg_householder_product",
         "ormqr", "_linalg_qr", "linalg_ldl_factor_ex", "_ldl_solve", "_linalg_svd", "_linalg_eigh", "_linalg_eig", "linalg_matrix_exp",
         "_solve_triangular", "_lu_solve")  # fmt: skip


@named("mm", "bmm")
def _product(level: Level, op: Any, self: Tensor, mat2: Tensor) -> Any:
    return ops.matmul(level.of(self), level.of(mat2))


@named("addmm")
def _addmm(
    level: Level,
    op: Any,
    self: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> Any:
    product = ops.matmul(level.of(mat1), level.of(mat2))
    if alpha != 1:
        product = ops.mul(product, alpha)
    if beta == 0:
        return product if product.ndim == 3 else level.front(product)
    added = level.aligned(self, 2)
    return ops.add(product, added if beta == 1 else ops.mul(added, beta))


@named("vdot")
def _vdot(level: Level, op: Any, self: Tensor, other: Tensor) -> Any:
    row = ops.unsqueeze(ops.conj(level.of(self)), -2)
    return ops.squeeze(ops.matmul(row, ops.unsqueeze(level.of(other), -1)), [-2, -1])


@named("linear")
def _linear(
    level: Level, op: Any, input: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Any:
    if bias is not None and bias.ndim > 1:
        product = (
            level.entry(_linear(level, op, input, weight))
            if level.has(input) or level.has(weight)
            else op(input, weight)
        )
        return pointwise(level, ops.add, (product, bias), {})
    ndim = max(input.ndim, 1)
    if not level.has(weight):
        if not level.has(bias):
            return op(level.of(input), weight, bias)
        result = op(level.of(input), weight) if level.has(input) else op(input, weight)
    elif level.has(input):
        whole = level.of(weight)
        count = math.prod(input.shape[:-1])
        rows = ops.reshape(level.of(input), [level.size, count, input.shape[-1]])
        columns = ops.transpose(whole, 1, 2)
        if bias is not None:
            result = ops.baddbmm(ops.unsqueeze(level.front(bias), 1), rows, columns)
        else:
            result = ops.bmm(rows, columns)
        return ops.reshape(result, [level.size, *input.shape[:-1], weight.shape[0]])
    else:
        whole = level.of(weight)
        stacked = ops.reshape(whole, [level.size * weight.shape[0], weight.shape[1]])
        result = ops.reshape(op(input, stacked), [*input.shape[:-1], level.size, weight.shape[0]])
        result = ops.movedim(result, -2, 0)
    if bias is None:
        return result
    return ops.add(result, level.aligned(bias, ndim))
