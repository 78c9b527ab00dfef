"""Result dtypes in autocast regions of the CPU, beside PyTorch's."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import argand

# Expressions over L (argand or torch), F (its nn.functional) and x(*shape), a tensor of the dtype under test.
CALLS = """
L.mm(x(3,3), x(3,3))
L.bmm(x(2,3,3), x(2,3,3))
L.addmm(x(3), x(3,3), x(3,3))
L.baddbmm(x(2,3,3), x(2,3,3), x(2,3,3))
L.matmul(x(3,3), x(3,3))
L.matmul(x(2,3,3), x(3,3))
L.mv(x(3,3), x(3))
L.dot(x(3), x(3))
L.outer(x(3), x(3))
L.einsum("ij,jk->ik", x(3,3), x(3,3))
x(3,3) @ x(3,3)
F.linear(x(3,3), x(3,3), x(3))
F.conv1d(x(1,3,5), x(3,3,3))
F.conv2d(x(1,3,5,5), x(3,3,3,3))
F.scaled_dot_product_attention(x(1,2,4,8), x(1,2,4,8), x(1,2,4,8))
F.layer_norm(x(3,3), [3], x(3), x(3))
F.rms_norm(x(3,3), [3], x(3))
F.group_norm(x(2,4,3), 2, x(4), x(4))
F.batch_norm(x(4,3), None, None, training=True)
F.cross_entropy(x(3,3), L.tensor([0,1,2]))
F.nll_loss(x(3,3), L.tensor([0,1,2]))
F.mse_loss(x(3), x(3))
F.l1_loss(x(3), x(3))
F.smooth_l1_loss(x(3), x(3))
F.huber_loss(x(3), x(3))
F.kl_div(x(3), x(3))
F.binary_cross_entropy(x(3), x(3))
F.binary_cross_entropy_with_logits(x(3), x(3))
F.hinge_embedding_loss(x(3), x(3))
F.margin_ranking_loss(x(3), x(3), x(3))
F.soft_margin_loss(x(3), x(3))
F.cosine_embedding_loss(x(2,3), x(2,3), x(2))
F.triplet_margin_loss(x(3,3), x(3,3), x(3,3))
F.poisson_nll_loss(x(3), x(3))
L.prod(x(3))
L.prod(x(3,3), 1)
L.sum(x(3,3))
L.mean(x(3,3))
L.exp(x(3))
L.log(x(3))
L.pow(x(3), 2.5)
L.softmax(x(3,3), -1)
L.log_softmax(x(3,3), -1)
L.cumsum(x(3), 0)
L.logsumexp(x(3,3), 1)
L.norm(x(3))
L.std(x(3))
L.gelu(x(3)) if hasattr(L, "gelu") else F.gelu(x(3))
L.relu(x(3))
L.sigmoid(x(3))
L.cat([x(3), x(3).float()])
L.stack([x(3), x(3).float()])
x(3) + x(3).float()
L.addcmul(x(3), x(3), x(3).float())
L.where(x(3) > 0.3, x(3), x(3).float())
F.max_pool2d(x(1,1,4,4), 2)
F.avg_pool2d(x(1,1,4,4), 2)
F.embedding(L.tensor([0]), x(3,3))
F.dropout(x(3))
L.tril(x(3,3))
L.addmv(x(3), x(3,3), x(3))
L.linalg.vecdot(x(3,3), x(3,3))
L.cdist(x(3,3), x(3,3))
L.trace(x(3,3))
L.polar(x(3), x(3)).real
L.quantile(x(3), 0.5)
L.linalg.inv(x(3,3))
L.linalg.svdvals(x(3,3))
L.linalg.solve(x(3,3), x(3,3))
L.linalg.eigvalsh(x(3,3))
L.linalg.qr(x(3,3)).R
F.bilinear(x(3,2), x(3,2), x(4,2,2))
F.grid_sample(x(1,1,3,3), x(1,2,2,2), align_corners=False)
F.avg_pool3d(x(1,1,4,4,4), 2)
F.max_pool3d(x(1,1,4,4,4), 2)
F.adaptive_avg_pool3d(x(1,1,4,4,4), 2)
F.max_unpool2d(*F.max_pool2d(x(1,1,4,4), 2, return_indices=True), 2)
F.fractional_max_pool2d(x(1,1,6,6), 2, output_size=2)
F.pad(x(1,2,4), (1,1), mode="reflect")
F.pad(x(1,2,4,4), (1,1,1,1), mode="reflect")
F.pad(x(1,2,4,4,4), (1,1,1,1,1,1), mode="reflect")
F.pad(x(1,2,4,4,4), (1,1,1,1,1,1), mode="replicate")
F.pad(x(1,2,4), (1,1), mode="circular")
F.pad(x(1,2,4), (1,1))
L.nn.LSTM(3, 4, 2, bidirectional=True)(x(2,2,3))[0]
L.nn.LSTM(3, 4)(x(2,2,3))[1][1]
L.nn.LSTM(3, 4, proj_size=2)(x(2,2,3))[1][1]
L.nn.LSTM(3, 4)(L.nn.utils.rnn.pack_sequence([x(2,3), x(1,3)]))[1][1]
L.nn.GRU(3, 4)(x(2,2,3))[0]
L.nn.RNN(3, 4)(x(2,2,3))[0]
""".strip().splitlines()


def _dtype(library: Any, call: str, dtype: str, lower: str) -> str:
    def x(*shape: int) -> Any:
        return (library.rand(*shape) * 0.5 + 0.2).to(getattr(library, dtype))

    with library.autocast("cpu", dtype=getattr(library, lower)):
        result = eval(call, {"L": library, "F": library.nn.functional, "x": x, "hasattr": hasattr})
    return str(result.dtype).rpartition(".")[2]


@pytest.mark.parametrize("call", CALLS)
def test_dtypes(call: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype, lower in (
            ("float32", "bfloat16"),
            ("bfloat16", "bfloat16"),
            ("float64", "bfloat16"),
        ):
            try:
                want = _dtype(torch, call, dtype, lower)
            except RuntimeError:
                continue  # the peer has no kernel for the dtype
            assert _dtype(argand, call, dtype, lower) == want, (call, dtype)
