"""Backward kernels called by hand: what they read of the forward pass has its sizes and dtypes, or is an error."""

from __future__ import annotations

import pytest

import argand_aten as aten
import argand_c10 as c10


def test_attention() -> None:
    q, grad = (aten.randn(2, 4, 5, 3) for _ in range(2))
    k, v = (aten.randn(2, 2, 7, 3) for _ in range(2))
    out, lse = aten.attention(q, k, v, None, False, 0.5)
    expected = aten.attention_backward(grad, q, k, v, None, out, lse, False, 0.5)
    found = aten.attention_backward(grad, q, k, v, None, out, lse.to(c10.float64), False, 0.5)
    assert all(aten.equal(a, b) for a, b in zip(found, expected, strict=True))
    for wrong in ((grad[:1], out, lse), (grad, out[..., :2], lse), (grad, out, lse[:, :, :4])):
        with pytest.raises(RuntimeError, match="attention_backward: got grad_out"):
            aten.attention_backward(wrong[0], q, k, v, None, *wrong[1:], False, 0.5)
    _, lse = aten.attention(q, k[:, :, :0], v[:, :, :0], None, False, 0.5)
    assert lse.tolist() == aten.full((2, 4, 5), -float("inf")).tolist()


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_nll_loss(reduction: int) -> None:
    x, y = aten.randn(4, 3), aten.tensor([0, 2, 1, 1])
    out, total = aten.nll_loss_forward(x, y, None, reduction, -100)
    grad = aten.ones_like(out)
    expected = aten.nll_loss_backward(grad, x, y, None, reduction, -100, total)
    half, wide = grad.to(c10.float16), total.to(c10.float64)
    assert aten.equal(aten.nll_loss_backward(half, x, y, None, reduction, -100, wide), expected)
    for wrong in ((aten.ones(2), total), (grad, aten.ones(2)), (grad, aten.ones(0))):
        with pytest.raises(RuntimeError, match="nll_loss_backward: got grad_output"):
            aten.nll_loss_backward(wrong[0], x, y, None, reduction, -100, wrong[1])


def test_scale() -> None:
    one, count = aten.ones(1), aten.ones(1, dtype=c10.int32)
    for wrong in (
        (one.to(c10.float16), count, one),
        (one, one, one),
        (one, count, aten.ones(0)),
        (one, count, one.to(c10.float16)),
    ):
        with pytest.raises(RuntimeError, match="_amp_update_scale_: got"):
            c10.find_operator("_amp_update_scale_")(*wrong, 2.0, 0.5, 2)
