"""Linear maps, embeddings and distances."""

from __future__ import annotations

import warnings

import argand_aten as aten
from argand_autograd import is_grad_enabled
from argand_autograd.sparse import embedding as sparse_embedding
from argand_c10 import Tensor, bfloat16, dtype, float16, float32, int32, int64
from argand_c10.errors import require_tensors

__all__ = [
    "bilinear",
    "cosine_similarity",
    "embedding",
    "embedding_bag",
    "grouped_mm",
    "linear",
    "one_hot",
    "pairwise_distance",
    "pdist",
]


def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """input @ weight.T + bias, with input (*, in), weight (out, in) and bias (out), or weight (in) alone."""
    if bias is None and getattr(weight, "ndim", 2) == 1:  # what is no tensor, the operator refuses
        return aten.matmul(input, weight, out=out)
    if out is None:  # 40 ns of a small product's 215 less
        return aten.linear(input, weight, bias)
    return aten.linear(input, weight, bias, out=out)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Sum over i and j of input1[*, i] * weight[o, i, j] * input2[*, j], plus bias[o]."""
    return aten.bilinear(input1, input2, weight, bias)


def _records_sparse(weight: Tensor, sparse: bool) -> bool:
    """Whether a sparse gradient will be made; elsewhere `sparse` changes nothing."""
    return sparse and weight.requires_grad and is_grad_enabled()


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
        sparse: whether the gradient of `weight` is of layout sparse_coo, with an element for each index.
    """
    require_tensors("embedding", input=input, weight=weight)
    if weight.dim() != 2:
        raise RuntimeError(
            f"embedding: got a weight of shape {list(weight.shape)}, expected (rows, features)"
        )
    rows = weight.shape[0]
    index = -1
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise AssertionError(
                f"embedding: got padding_idx {padding_idx}, expected one in [{-rows}, {rows})"
            )
        index = padding_idx % rows
    if max_norm is not None:
        aten.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    if _records_sparse(weight, sparse):
        return sparse_embedding(weight, input, index, scale_grad_by_freq)
    return aten.embedding(weight, input, index, scale_grad_by_freq, False)


def _looked_up(
    weight: Tensor,
    input: Tensor,
    offsets: Tensor,
    per_sample_weights: Tensor | None,
    scale_grad_by_freq: bool,
    padding_idx: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The arguments of `embedding_bag` on the rows that are looked up, without those of `padding_idx`."""
    if padding_idx is not None:
        kept = input != padding_idx % weight.shape[0]
        before = aten.cat([kept.new_zeros([1], dtype=int64), aten.cumsum(kept, 0)])
        offsets = before.index_select(0, offsets)
        input = input[kept]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[kept]
    rows = sparse_embedding(weight, input, -1, scale_grad_by_freq)
    places = aten.arange(input.shape[0], dtype=offsets.dtype, device=input.device)
    return rows, places, offsets, per_sample_weights


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
        sparse: whether the gradient of `weight` is of layout sparse_coo, with an element for each index; not with mode max.
        per_sample_weights: factors of the rows, of the shape of `input` (mode sum).
        include_last_offset: the last of `offsets` is the end of the last bag.
        padding_idx: rows of this number are left out.
    """
    if weight.dtype == int64 and input.is_floating_point():
        warnings.warn(
            "embedding_bag: got (weight, input), an order that is deprecated; use embedding_bag(input, weight)",
            stacklevel=2,
        )
        input, weight = weight, input
    if mode not in _BAG_MODES:
        raise ValueError(
            f"embedding_bag: got mode {mode!r}, expected one of {', '.join(_BAG_MODES)}"
        )
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError(
            "embedding_bag: got scale_grad_by_freq or sparse with mode 'max', expected neither"
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
    if _records_sparse(weight, sparse):
        weight, input, offsets, per_sample_weights = _looked_up(
            weight, input, offsets, per_sample_weights, scale_grad_by_freq, padding_idx
        )
        scale_grad_by_freq, padding_idx = False, None
    result, _, _, _ = aten.embedding_bag(
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _BAG_MODES.index(mode),
        False,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )
    return result


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dtype | None = None,
) -> Tensor:
    """Products of groups of two matrices' rows or columns, as mixtures of experts need them.

    Args:
        mat_a: float32, float16 or bfloat16; (rows, k), whose rows (or, beside a 2-d `mat_b`, columns) are in groups,
            or (groups, rows, k).
        mat_b: as `mat_a`; (k, columns), whose columns (or rows) are in groups, or (groups, k, columns).
        offs: where each group ends, int32; None where both are 3-d.
        bias: None.
        out_dtype: that of `mat_a`.

    Returns:
        (rows, columns), or with one product a group (groups, rows, columns). What is in no group is 0.

    Raises:
        RuntimeError: shapes or dtypes are not those, or ends decrease or lie outside of the matrix.
    """
    _check_grouped(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return aten.bmm(mat_a, mat_b)
    ends: list[int] = offs.tolist()
    size = mat_a.shape[-1 if mat_b.dim() == 2 else 0] if mat_a.dim() == 2 else mat_b.shape[1]
    if sorted(ends) != ends or (ends and not 0 <= ends[0] <= ends[-1] <= size):
        raise RuntimeError(
            f"grouped_mm: got offs {ends}, expected ends of groups that do not decrease and lie "
            f"between 0 and {size}"
        )
    groups = list(zip([0, *ends], ends, strict=False))
    last = ends[-1] if ends else 0
    if mat_a.dim() == 2 and mat_b.dim() == 2:
        if not ends:
            return mat_a.new_zeros([0, mat_a.shape[0], mat_b.shape[1]])
        return aten.stack([mat_a[:, begin:end] @ mat_b[begin:end] for begin, end in groups])
    if mat_a.dim() == 2:
        parts = [mat_a[begin:end] @ mat_b[i] for i, (begin, end) in enumerate(groups)]
        rest = mat_a.new_zeros([mat_a.shape[0] - last, mat_b.shape[2]])
        return aten.cat([*parts, rest], 0)
    parts = [mat_a[i] @ mat_b[:, begin:end] for i, (begin, end) in enumerate(groups)]
    rest = mat_a.new_zeros([mat_a.shape[1], mat_b.shape[1] - last])
    return aten.cat([*parts, rest], 1)


def _check_grouped(
    a: Tensor, b: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: dtype | None
) -> None:
    shapes = f"grouped_mm: got matrices of shapes {list(a.shape)} and {list(b.shape)}"
    if a.dtype not in (float32, float16, bfloat16) or b.dtype != a.dtype:
        raise RuntimeError(
            f"grouped_mm: got matrices of {a.dtype} and {b.dtype}, expected float32, float16 or "
            "bfloat16, both alike"
        )
    if a.dim() not in (2, 3) or b.dim() not in (2, 3):
        raise RuntimeError(f"{shapes}, expected 2 or 3 dimensions")
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"{shapes}, whose inner sizes {a.shape[-1]} and {b.shape[-2]} differ")
    if (offs is None) != (a.dim() == b.dim() == 3):
        raise RuntimeError(
            f"{shapes} {'without' if offs is None else 'with'} offs, expected offs where a matrix is "
            "2-d, and none where both are 3-d"
        )
    if offs is not None and (offs.dtype != int32 or offs.dim() != 1):
        raise RuntimeError(
            f"grouped_mm: got offs of {offs.dtype} and shape {list(offs.shape)}, expected 1-d int32"
        )
    counts = {matrix.shape[0] for matrix in (a, b) if matrix.dim() == 3}
    if len(counts | ({offs.shape[0]} if offs is not None and counts else set())) > 1:
        raise RuntimeError(f"{shapes} for different numbers of groups")
    if bias is not None:
        raise RuntimeError("grouped_mm: got a bias, expected None; add it to the result")
    if out_dtype not in (None, a.dtype):
        raise RuntimeError(
            f"grouped_mm: got out_dtype {out_dtype}, expected that of the matrices, {a.dtype}"
        )


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
