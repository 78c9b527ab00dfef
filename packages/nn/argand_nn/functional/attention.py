"""Scaled dot-product and multi-head attention."""

from __future__ import annotations

import math

import argand_aten as aten
from argand_c10 import Tensor
from argand_c10 import bool as bool_
from argand_nn.functional.linear_maps import linear
from argand_nn.functional.normalization import dropout

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value (Vaswani et al., 2017).

    Args:
        query: (..., heads, L, E).
        key: (..., heads, S, E).
        value: (..., heads, S, V).
        attn_mask: broadcastable to (..., heads, L, S): bool, True where attention is allowed, or
            floating point, added to the scores.
        dropout_p: probability of dropping an attention weight; applies whenever it is above 0.
        is_causal: let a query see only keys at or before its place; excludes `attn_mask`.
        scale: factor of the scores; 1 / sqrt(E) by default.
        enable_gqa: let several query heads share one key head.
    """
    return aten.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attn_mask,
        dropout_p=dropout_p,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
    )


def as_additive_mask(mask: Tensor | None, like: Tensor, name: str) -> Tensor | None:
    """A mask to add to scores: bool masks (True where attention is forbidden) become -inf and 0."""
    if mask is None:
        return None
    if mask.is_floating_point():
        return mask
    if mask.dtype != bool_:
        raise AssertionError(
            f"{name}: got a mask of dtype {mask.dtype}, expected bool or a floating-point dtype"
        )
    zeros = aten.zeros(mask.shape, dtype=like.dtype, device=like.device)
    return aten.masked_fill(zeros, mask, -math.inf)


def _project(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    weights: tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None],
    bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of width E from inputs (L or S, N, E); equal inputs share a GEMM."""
    packed, q_weight, k_weight, v_weight = weights
    width = query.shape[-1]
    if packed is not None and query is key and key is value:
        joint = linear(query, packed, bias)
        q, k, v = aten.split(joint, width, -1)
        return q, k, v
    if packed is not None:
        q_weight, k_weight, v_weight = aten.split(packed, width, 0)
    assert q_weight is not None and k_weight is not None and v_weight is not None
    biases = (None, None, None) if bias is None else aten.split(bias, width, 0)
    return (
        linear(query, q_weight, biases[0]),
        linear(key, k_weight, biases[1]),
        linear(value, v_weight, biases[2]),
    )


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, width: int, heads: int) -> None:
    if not (query.dim() == key.dim() == value.dim() and query.dim() in (2, 3)):
        raise AssertionError(
            f"multi_head_attention: got {_shapes(query, key, value)}, expected all 3-d (batched) or all 2-d"
        )
    if query.shape[-1] != width:
        raise AssertionError(
            f"multi_head_attention: got {_shapes(query, key, value)}, expected a query of embed_dim {width}"
        )
    if width % heads:
        raise AssertionError(
            f"multi_head_attention: got embed_dim {width}, expected a multiple of num_heads {heads}"
        )
    if key.shape[:-1] != value.shape[:-1]:
        raise AssertionError(
            f"multi_head_attention: got {_shapes(query, key, value)}, expected keys and values of one length and batch"
        )


def _shapes(query: Tensor, key: Tensor, value: Tensor) -> str:
    return f"query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)}"


def _joint_mask(
    attn_mask: Tensor | None,
    key_padding_mask: Tensor | None,
    query: Tensor,
    batch: int,
    heads: int,
    length: int,
    source: int,
) -> Tensor | None:
    """Both masks as one additive mask that broadcasts to (batch, heads, length, source)."""
    mask = as_additive_mask(attn_mask, query, "attn_mask")
    if mask is not None:
        if tuple(mask.shape) == (batch * heads, length, source) and mask.dim() == 3:
            mask = mask.reshape(batch, heads, length, source)
        elif tuple(mask.shape) != (length, source):
            raise RuntimeError(
                f"multi_head_attention: got attn_mask of shape {list(mask.shape)}, expected "
                f"[{length}, {source}] or [{batch * heads}, {length}, {source}]"
            )
    padding = as_additive_mask(key_padding_mask, query, "key_padding_mask")
    if padding is None:
        return mask
    if tuple(padding.shape) not in ((batch, source), (source,)):
        raise AssertionError(
            f"multi_head_attention: got key_padding_mask of shape {list(padding.shape)}, expected "
            f"[{batch}, {source}]"
        )
    padding = padding.reshape(batch, 1, 1, source)
    return padding if mask is None else mask + padding


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Multi-head attention on (L, N, E) inputs (or (L, E)) with the given projections.

    Returns:
        The output (L, N, E), and with `need_weights` the attention weights (N, L, S), averaged
        over heads unless `average_attn_weights` is False ((N, heads, L, S) then).
    """
    _check_inputs(query, key, value, embed_dim_to_check, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "multi_head_attention: got is_causal without attn_mask, expected the mask too; is_causal "
            "only says what the mask is"
        )
    batched = query.dim() == 3
    if not batched:
        same = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same[0] else key.unsqueeze(1)
        value = key if same[1] else value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    head_dim = width // num_heads
    packed = None if use_separate_proj_weight else in_proj_weight
    weights = (packed, q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = _project(query, key, value, weights, in_proj_bias)

    def heads(x: Tensor) -> Tensor:  # (S, N, E) -> (N, heads, S, head_dim)
        return x.reshape(x.shape[0], batch, num_heads, head_dim).permute(1, 2, 0, 3)

    extra = 0
    if bias_k is not None and bias_v is not None:
        k = aten.cat([k, bias_k.expand(1, batch, width)], 0)
        v = aten.cat([v, bias_v.expand(1, batch, width)], 0)
        extra += 1
    q = heads(q)
    k = heads(k) if static_k is None else static_k.reshape(batch, num_heads, -1, head_dim)
    v = heads(v) if static_v is None else static_v.reshape(batch, num_heads, -1, head_dim)
    if add_zero_attn:
        zeros = aten.zeros((batch, num_heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k, v = aten.cat([k, zeros], 2), aten.cat([v, zeros], 2)
        extra += 1
    mask = _joint_mask(attn_mask, key_padding_mask, q, batch, num_heads, length, k.shape[2] - extra)
    if mask is not None and extra:
        mask = aten.cat(
            [mask, aten.zeros((*mask.shape[:-1], extra), dtype=mask.dtype, device=mask.device)], -1
        )
    drop = dropout_p if training else 0.0
    scores: Tensor | None = None
    if need_weights:
        scores = aten.matmul(q * (1.0 / math.sqrt(head_dim)), k.transpose(-2, -1))
        scores = aten.softmax(scores if mask is None else scores + mask, -1)
        scores = dropout(scores, drop, training)
        context = aten.matmul(scores, v)
    else:
        if mask is not None:  # (L, S) and (N, 1, 1, S) masks broadcast over the heads
            mask = mask.expand(batch, num_heads, length, k.shape[2])
        context = scaled_dot_product_attention(q, k, v, mask, drop)
    context = context.permute(2, 0, 1, 3).reshape(length, batch, width)
    output = linear(context, out_proj_weight, out_proj_bias)
    if scores is not None and average_attn_weights:
        scores = aten.mean(scores, 1)
    if not batched:
        output = output.squeeze(1)
        scores = None if scores is None else scores.squeeze(0)
    return output, scores
