"""Linear maps, embeddings and distances."""

from __future__ import annotations

import argand_aten as aten
from argand_c10 import Tensor

__all__ = [
    "bilinear",
    "cosine_similarity",
    "embedding",
    "linear",
    "one_hot",
    "pairwise_distance",
]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias, with input (*, in), weight (out, in) and bias (out)."""
    return aten.linear(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Sum over i and j of input1[*, i] * weight[o, i, j] * input2[*, j], plus bias[o]."""
    if input1.shape[:-1] != input2.shape[:-1]:
        raise ValueError(
            f"bilinear: got inputs of shapes {list(input1.shape)} and {list(input2.shape)}, "
            "expected equal sizes in all dimensions but the last"
        )
    # (*, 1, 1, i) @ (o, i, j) -> (*, o, 1, j); times (*, 1, j, 1) -> (*, o, 1, 1).
    left = aten.matmul(input1.unsqueeze(-2).unsqueeze(-2), weight)
    result = aten.matmul(left, input2.unsqueeze(-1).unsqueeze(-3)).squeeze(-1).squeeze(-1)
    return result if bias is None else result + bias


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` (rows, features) by the integers of `input` (*), as (*, features).

    Args:
        input: row numbers, int32 or int64.
        weight: the table.
        padding_idx: a row that gets no gradient; negative counts from the end.
        max_norm: rows looked up are first shortened in place to this norm.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide gradients by how often a row occurs in `input`.
        sparse: not supported; gradients are dense.
    """
    if sparse:
        raise ValueError(
            "embedding: got sparse=True, expected False; sparse gradients do not exist"
        )
    rows = weight.shape[0]
    index = -1
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise ValueError(
                f"embedding: got padding_idx {padding_idx}, expected one in [{-rows}, {rows})"
            )
        index = padding_idx % rows
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    return aten.embedding(weight, input, index, scale_grad_by_freq, False)


def _shorten_rows(weight: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    table = weight.detach()
    places = sorted(set(index.reshape(-1).tolist()))
    if not places:
        return
    used = aten.tensor(places, device=table.device)
    rows = aten.index_select(table, 0, used)
    norms = aten.norm(rows, norm_type, 1, True)
    table[used] = rows * aten.clamp(max_norm / (norms + 1e-7), max=1.0)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Integers (*) as int64 vectors (*, num_classes) that are 1 at that place and 0 elsewhere."""
    return aten.one_hot(tensor, num_classes)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between `x1` and `x2` along `dim`; each norm is at least `eps`."""
    product = aten.sum(x1 * x2, dim)
    norm1 = aten.sqrt(aten.clamp(aten.sum(x1 * x1, dim), min=eps * eps))
    norm2 = aten.sqrt(aten.clamp(aten.sum(x2 * x2, dim), min=eps * eps))
    return product / (norm1 * norm2)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """p-norm of x1 - x2 + eps along the last dimension."""
    return aten.norm(x1 - x2 + eps, p, -1, keepdim)
