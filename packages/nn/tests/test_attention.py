"""Attention and transformers against closed forms in NumPy, and their error texts."""

from __future__ import annotations

import math

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
import argand_nn as nn
import argand_nn.functional as F
from argand_autograd import grad
from argand_nn.attention import SDPBackend, sdpa_kernel
from argand_nn.attention.bias import (
    CausalBias,
    CausalVariant,
    causal_lower_right,
    causal_upper_left,
)

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def tensor(array, requires_grad=False):
    return aten.tensor(np.asarray(array).tolist(), requires_grad=requires_grad)


def close(ours, expected, rtol=1e-5, atol=1e-6):
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=rtol, atol=atol)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def test_attention_refuses_what_does_not_fit():
    q, kv = aten.ones(2, 4, 3, 8), aten.ones(2, 2, 5, 8)
    with pytest.raises(RuntimeError):  # fewer heads are shared only when asked for
        F.scaled_dot_product_attention(q, kv, kv)
    shared = F.scaled_dot_product_attention(q, kv, kv, enable_gqa=True)
    assert shared.shape == F.scaled_dot_product_attention(q, kv[:, :1], kv[:, :1]).shape == q.shape
    k = aten.ones(2, 4, 5, 8)
    with pytest.raises(IndexError, match="at least 2 dimensional"):
        F.scaled_dot_product_attention(q, k, k, aten.ones(5))
    with pytest.raises(RuntimeError, match="bool or float or to match query dtype"):
        F.scaled_dot_product_attention(q, k, k, aten.ones(3, 5, dtype=int))


def test_attention():
    q, k, v = normal(2, 3, 4, 8), normal(2, 3, 5, 8), normal(2, 3, 5, 6)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(8)
    out = F.scaled_dot_product_attention(tensor(q), tensor(k), tensor(v))
    close(out, softmax(scores, -1) @ v, 1e-4, 1e-5)
    mask = np.ones((4, 5), bool)
    mask[:, 3:] = False
    out = F.scaled_dot_product_attention(tensor(q), tensor(k), tensor(v), tensor(mask))
    close(out, softmax(np.where(mask, scores, -np.inf), -1) @ v, 1e-4, 1e-5)
    causal = np.tril(np.ones((4, 4), bool))
    out = F.scaled_dot_product_attention(
        tensor(q), tensor(k[:, :, :4]), tensor(v[:, :, :4]), is_causal=True
    )
    close(
        out,
        softmax(np.where(causal, scores[..., :4], -np.inf), -1) @ v[:, :, :4],
        1e-4,
        1e-5,
    )


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 2, 3, 4)])
@pytest.mark.parametrize("learned", [False, True])
def test_rows_that_attend_to_nothing_have_no_gradient(shape, learned):
    mask = np.zeros((3, 3), "float32")
    mask[1] = mask[0, 1] = -np.inf
    leaves = [tensor(normal(*shape)).requires_grad_() for _ in range(3)]
    leaves.append(tensor(mask).requires_grad_(learned))
    out = F.scaled_dot_product_attention(*leaves)
    assert not out[..., 1, :].any()
    out.sum().backward()
    for leaf in leaves[: 4 if learned else 3]:
        assert leaf.grad.isfinite().all()
    assert not leaves[0].grad[..., 1, :].any()


@pytest.mark.parametrize("kind", ["all", "causal", "masked"])
@pytest.mark.parametrize(("queries", "keys"), [(130, 577), (300, 50), (193, 192), (64, 385)])
def test_attention_in_many_tiles(queries, keys, kind):
    """Gradients too, beside the formula in ordinary operators."""
    leaves = [
        aten.randn([1, 2, size, 9], dtype=c10.float64).requires_grad_()
        for size in (queries, keys, keys)
    ]
    q, k, v = leaves
    allowed = aten.ones([queries, keys], dtype=c10.bool)
    if kind == "causal":
        allowed = allowed.tril()
    if kind == "masked":
        allowed = aten.rand([queries, keys]) < 0.7
        allowed[:, 0] = True
    scores = (q @ k.transpose(2, 3) / 3).masked_fill(~allowed, -math.inf)
    expected = aten.softmax(scores, -1) @ v
    mask = allowed if kind == "masked" else None
    out = F.scaled_dot_product_attention(q, k, v, mask, is_causal=kind == "causal")
    weights = aten.randn(out.shape, dtype=c10.float64)
    ours, theirs = (aten.sum(result * weights) for result in (out, expected))
    for a, b in [(out, expected), *zip(grad(ours, leaves), grad(theirs, leaves), strict=True)]:
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-11)


def test_multihead_attention():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = tensor(normal(3, 5, 8))
    out, weights = layer(x, x, x)
    assert tuple(out.shape) == (3, 5, 8)
    assert tuple(weights.shape) == (3, 5, 5)
    close(weights.sum(-1), np.ones((3, 5)), 1e-5)
    fast, none = layer(x, x, x, need_weights=False)
    assert none is None
    close(fast, out.detach().numpy(), 1e-4, 1e-5)
    _, heads = layer(x, x, x, average_attn_weights=False)
    assert tuple(heads.shape) == (3, 2, 5, 5)
    single, _ = layer(x[0], x[0], x[0])
    close(single, out[0].detach().numpy(), 1e-4, 1e-5)
    blocked = aten.triu(aten.ones(5, 5), 1).to(c10.bool)
    masked, weights = layer(x, x, x, attn_mask=blocked, is_causal=True)
    assert float(aten.triu(weights, 1).abs().sum()) == 0
    fast, _ = layer(x, x, x, attn_mask=blocked, need_weights=False)
    close(fast, masked.detach().numpy(), 1e-4, 1e-5)


def test_attention_errors():
    layer = nn.MultiheadAttention(8, 2)
    x = tensor(normal(5, 3, 8))
    with pytest.raises(AssertionError, match="expected a query of embed_dim 8"):
        layer(x[:, :, :6], x, x)
    with pytest.raises(AssertionError, match="keys and values of one length"):
        layer(x, x, x[:4])
    with pytest.raises(RuntimeError, match=r"attn_mask of shape \[5, 4\]"):
        layer(x, x, x, attn_mask=aten.zeros(5, 4))
    with pytest.raises(AssertionError, match="key_padding_mask"):
        layer(x, x, x, key_padding_mask=aten.zeros(5, 3))
    with pytest.raises(RuntimeError, match="is_causal without attn_mask"):
        layer(x, x, x, is_causal=True)
    with pytest.raises(AssertionError, match="expected bool or a floating-point"):
        layer(x, x, x, attn_mask=aten.zeros(5, 5, dtype=c10.int64))
    with pytest.raises(AssertionError, match="embed_dim 8 and num_heads 3"):
        nn.MultiheadAttention(8, 3)


def test_transformer_stacks():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8))
    x = tensor(normal(2, 5, 8))
    by_hand = encoder.norm(encoder.layers[1](encoder.layers[0](x)))
    close(encoder(x), by_hand.detach().numpy())
    assert encoder.layers[0].linear1.weight is not layer.linear1.weight
    causal = nn.modules.transformer.generate_square_subsequent_mask(5)
    first = encoder(x, mask=causal, is_causal=True)[:, :3].detach().numpy()
    close(encoder(x[:, :3], mask=causal[:3, :3]), first, 1e-4, 1e-5)
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, batch_first=True), 2
    )
    assert tuple(decoder(x[:, :4], x).shape) == (2, 4, 8)
    c10.manual_seed(0)
    model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
    tgt = x[:, :4]
    close(model(x, tgt), model.decoder(tgt, model.encoder(x)).detach().numpy())
    mask = model.generate_square_subsequent_mask(4)
    seen = model(x, tgt, tgt_mask=mask)[:, :2].detach().numpy()
    close(model(x, tgt[:, :2], tgt_mask=mask[:2, :2]), seen, 1e-4, 1e-5)
    with pytest.raises(RuntimeError, match="expected equal batches"):
        model(x, tgt[:1])
    with pytest.raises(RuntimeError, match="activation 'swish'"):
        nn.TransformerEncoderLayer(8, 2, activation="swish")


@pytest.mark.parametrize(("length", "source"), [(3, 5), (4, 4)])
def test_causal_biases(length, source):
    q = aten.randn([2, 2, length, 8])
    k, v = aten.randn([2, 2, source, 8]), aten.randn([2, 2, source, 8])
    seen = np.tri(length, source, source - length, dtype=bool)
    lower, upper = causal_lower_right(length, source), causal_upper_left(length, source)
    attend = F.scaled_dot_product_attention
    close(attend(q, k, v, lower), attend(q, k, v, aten.tensor(seen.tolist())))
    close(attend(q, k, v, upper), attend(q, k, v, is_causal=True))
    assert lower.shape == (length, source) and lower.variant is CausalVariant.LOWER_RIGHT
    assert (lower & True).tolist() == seen.tolist()
    assert repr(lower) == repr(aten.tensor(seen.tolist()))
    with pytest.raises(ValueError, match="is_causal=True and a CausalBias"):
        attend(q, k, v, lower, is_causal=True)


def test_causal_bias_errors():
    with pytest.raises(AssertionError, match="expected two"):
        causal_upper_left(3)
    with pytest.raises(AssertionError, match="got variant 'x'"):
        CausalBias("x", 3, 4)
    with pytest.warns(UserWarning, match="the first queries see no key"):
        causal_lower_right(4, 3)


def test_choice_of_attention():
    x = tensor(normal(1, 2, 3, 4))
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        out = F.scaled_dot_product_attention(x, x, x)
    assert aten.equal(out, F.scaled_dot_product_attention(x, x, x))
    for wrong in ([], ["math"]):
        with pytest.raises(AssertionError, match="expected one or more of SDPBackend"):
            with sdpa_kernel(wrong):
                pass
