"""`flex_attention` is attention whose scores a function changes, eager and compiled."""

import math

import pytest

import argand as torch
import argand.nn.functional as F
from argand.nn.attention.flex_attention import (
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    noop_mask,
    or_masks,
)


def causal(b, h, q, kv):
    return q >= kv


def near(b, h, q, kv):
    return (q - kv).abs() <= 2


def distance(score, b, h, q, kv):
    return score - 0.5 * (h + 1) * (q - kv).abs()


@pytest.fixture
def qkv():
    torch.manual_seed(0)
    return [torch.randn(2, 4, 10, 8, dtype=torch.float64, requires_grad=True) for _ in range(3)]


def test_without_functions_it_is_attention(qkv):
    torch.testing.assert_close(flex_attention(*qkv), F.scaled_dot_product_attention(*qkv))
    got, lse = flex_attention(*qkv, scale=0.3, return_lse=True)
    torch.testing.assert_close(got, F.scaled_dot_product_attention(*qkv, scale=0.3))
    scores = 0.3 * qkv[0] @ qkv[1].transpose(-2, -1)
    torch.testing.assert_close(lse, scores.logsumexp(-1))
    _, aux = flex_attention(*qkv, scale=0.3, return_aux=AuxRequest(max_scores=True))
    assert aux.lse is None
    torch.testing.assert_close(aux.max_scores, scores.amax(-1))
    _, aux = flex_attention(*qkv, scale=0.3, return_aux=AuxRequest(lse=True, max_scores=True))
    assert torch.equal(aux.lse, lse)
    with pytest.raises(ValueError, match="return_lse and return_aux"):
        flex_attention(*qkv, return_lse=True, return_aux=AuxRequest())


def test_scores_and_masks_with_gradients(qkv):
    mask = create_block_mask(causal, None, None, 10, 10, BLOCK_SIZE=4)
    slopes = -0.5 * torch.arange(1, 5, dtype=torch.float64)[:, None, None]
    steps = (torch.arange(10)[:, None] - torch.arange(10)).abs()
    allowed = torch.ones(10, 10, dtype=torch.bool).tril()
    bias = (slopes * steps).masked_fill(~allowed, -math.inf)
    want = F.scaled_dot_product_attention(*qkv, attn_mask=bias)
    got = flex_attention(*qkv, score_mod=distance, block_mask=mask)
    torch.testing.assert_close(got, want)
    for a, b in zip(
        torch.autograd.grad(got.sum(), qkv), torch.autograd.grad(want.sum(), qkv), strict=True
    ):
        torch.testing.assert_close(a, b)


def test_compiled_it_is_the_same(qkv):
    mask = create_block_mask(causal, None, None, 10, 10)

    def attend(q, k, v):
        return flex_attention(q, k, v, score_mod=distance, block_mask=mask)

    torch.testing.assert_close(torch.compile(attend, fullgraph=True)(*qkv), attend(*qkv))


def test_functions_may_look_into_tensors(qkv):
    document = torch.tensor([[0] * 4 + [1] * 6, [0] * 7 + [1] * 3])
    bias = torch.randn(4, dtype=torch.float64)

    def same_document(b, h, q, kv):
        return document[b, q] == document[b, kv]

    mask = create_block_mask(same_document, 2, None, 10, 10)
    dense = (document[:, :, None] == document[:, None, :])[:, None]
    want = F.scaled_dot_product_attention(*qkv, attn_mask=dense)
    torch.testing.assert_close(flex_attention(*qkv, lambda s, b, h, q, kv: s + bias[h], mask), want)


def test_queries_that_see_nothing_give_zeros(qkv):
    mask = create_block_mask(lambda b, h, q, kv: q > kv, None, None, 10, 10)
    got, lse = flex_attention(*qkv, block_mask=mask, return_lse=True)
    assert (got[:, :, 0] == 0).all() and (lse[:, :, 0] == -math.inf).all()
    got.sum().backward()
    assert all(t.grad.isfinite().all() for t in qkv)


def test_heads_in_groups(qkv):
    q, k, v = qkv
    got = flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
    want = F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
    torch.testing.assert_close(got, want)
    with pytest.raises(ValueError, match="enable_gqa"):
        flex_attention(q, k[:, :2], v[:, :2])


def test_block_masks():
    mask = create_block_mask(causal, None, 2, 10, 9, BLOCK_SIZE=(4, 3))
    dense = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 1, 1]], dtype=torch.int32)
    assert mask.shape == (1, 2, 10, 9) and torch.equal(mask.to_dense()[0, 1], dense)
    assert mask.kv_num_blocks[0, 0].tolist() == [2, 2, 3]  # the last queries are padded
    assert mask.full_kv_num_blocks[0, 0].tolist() == [0, 1, 0]
    assert mask.sparsity() == pytest.approx(100 / 9) and isinstance(mask.to("cpu"), BlockMask)
    assert create_mask(noop_mask, None, None, 2, 3).all()
    both, either = (
        create_mask(join(causal, near), 1, 1, 6, 6)[0, 0] for join in (and_masks, or_masks)
    )
    c, n = (create_mask(mod, 1, 1, 6, 6)[0, 0] for mod in (causal, near))
    assert torch.equal(both, c & n) and torch.equal(either, c | n)
    with pytest.raises(RuntimeError, match="and_masks"):
        and_masks()


def test_what_does_not_fit_is_refused(qkv):
    q, k, v = qkv
    with pytest.raises(ValueError, match="4 dimensions"):
        flex_attention(q[0], k[0], v[0])
    with pytest.raises(ValueError, match="one dtype"):
        flex_attention(q, k.float(), v)
    with pytest.raises(ValueError, match="fit"):
        flex_attention(q, k[..., :4], v)
    with pytest.raises(ValueError, match="block_mask"):
        flex_attention(q, k, v, block_mask=create_block_mask(causal, None, None, 8, 8))
