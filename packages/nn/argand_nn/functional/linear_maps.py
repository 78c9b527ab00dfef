"""Linear maps, embeddings and distances."""

from __future__ import annotations

import argand_aten as aten
from argand_c10 import Tensor
from argand_c10.errors import require_tensors

__all__ = [
    "bilinear",
    "cosine_similarity",
    "embedding",
    "embedding_bag",
    "linear",
    "one_hot",
    "pairwise_distance",
    "pdist",
]


def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """input @ weight.T + bias, with input (*, in), weight (out, in) and bias (out)."""
    if out is None:  # 40 ns of a small product's 215 less
        return aten.linear(input, weight, bias)
    return aten.linear(input, weight, bias, out=out)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Sum over i and j of input1[*, i] * weight[o, i, j] * input2[*, j], plus bias[o]."""
    return aten.bilinear(input1, input2, weight, bias)


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
    require_tensors("embedding", input=input, weight=weight)
    if sparse:
        raise ValueError(
            "embedding: got sparse=True, expected False; sparse gradients do not exist"
        )
    if weight.dim() != 2:
        raise RuntimeError(
            f"embedding: got a weight of shape {list(weight.shape)}, expected (rows, features)"
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
        aten.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return aten.embedding(weight, input, index, scale_grad_by_freq, False)


_BAG_MODES = ("sum", "mean", "max")


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of rows of `weight` (rows, features), as (bags, features).

    Args:
        input: row numbers, int32 or int64: (bags, length), or of all bags in one dimension.
        weight: the table.
        offsets: where in a one-dimensional `input` the bags begin.
        max_norm: rows looked up are first shortened in place to this norm.
        norm_type: the p of that norm.
        scale_grad_by_freq: divide gradients by how often a row occurs in `input`.
        mode: sum, mean or max; that of an empty bag is 0.
        sparse: not supported; gradients are dense.
        per_sample_weights: factors of the rows, of the shape of `input` (mode sum).
        include_last_offset: the last of `offsets` is the end of the last bag.
        padding_idx: rows of this number are left out.
    """
    if mode not in _BAG_MODES:
        raise ValueError(
            f"embedding_bag: got mode {mode!r}, expected one of {', '.join(_BAG_MODES)}"
        )
    if per_sample_weights is not None:
        if per_sample_weights.shape != input.shape:
            raise ValueError(
                f"embedding_bag: got per_sample_weights {list(per_sample_weights.shape)}, expected "
                f"the shape of input {list(input.shape)}"
            )
        if mode != "sum":
            raise NotImplementedError(
                f"embedding_bag: got per_sample_weights with mode {mode!r}, expected mode 'sum'"
            )
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "embedding_bag: got offsets with an input of two dimensions, whose rows are the "
                "bags; expected none"
            )
        step = input.shape[1]
        offsets = aten.arange(input.shape[0], dtype=input.dtype, device=input.device) * step
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
        include_last_offset = False
    elif input.dim() != 1 or offsets is None or offsets.dim() != 1:
        raise ValueError(
            f"embedding_bag: got input of shape {list(input.shape)}, expected two dimensions, or "
            "one and offsets of one dimension"
        )
    if max_norm is not None:
        aten.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    result, _, _, _ = aten.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _BAG_MODES.index(mode),
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )
    return result


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Integers (*) as int64 vectors (*, num_classes) that are 1 at that place and 0 elsewhere."""
    return aten.one_hot(input, num_classes)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between `x1` and `x2` along `dim`; each norm is at least `eps`."""
    return aten.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """p-norm of x1 - x2 + eps along the last dimension."""
    return aten.pairwise_distance(x1, x2, p, eps, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """p-norm distances of all pairs of different rows of (rows, features)."""
    return aten.pdist(input, p)
