"""Modules and losses against PyTorch, from equal weights and inputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import argand_aten as aten
import argand_nn as nn
import argand_nn.functional as F

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def both(array, requires_grad=False):
    ours, theirs = aten.tensor(array.tolist()), torch.tensor(array.tolist())
    if requires_grad:
        ours.requires_grad_()
        theirs.requires_grad_()
    return ours, theirs


def close(ours, theirs, rtol=1e-4, atol=1e-5):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=atol)


def copy_weights(ours, theirs):
    state = {k: torch.tensor(v.numpy().copy()) for k, v in ours.state_dict().items()}
    assert list(state) == list(theirs.state_dict())
    theirs.load_state_dict(state)


def check(ours, theirs, *inputs, train=True):
    copy_weights(ours, theirs)
    ours.train(train)
    theirs.train(train)
    pairs = [both(x, np.issubdtype(x.dtype, np.floating)) for x in inputs]
    out, expected = ours(*[p[0] for p in pairs]), theirs(*[p[1] for p in pairs])
    if isinstance(out, tuple):
        out, expected = out[0], expected[0]
    close(out, expected)
    grad = normal(*expected.shape)
    out.backward(aten.tensor(grad.tolist()).reshape(out.shape))
    expected.backward(torch.tensor(grad.tolist()).reshape(expected.shape))
    for mine, other in pairs:
        if other.requires_grad:
            close(mine.grad, other.grad)
    for (name, mine), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert (mine.grad is None) == (other.grad is None), name
        if mine.grad is not None:
            close(mine.grad, other.grad)
    for mine, other in zip(ours.buffers(), theirs.buffers(), strict=True):
        close(mine, other)
    assert repr(ours) == repr(theirs)


MODULES = [
    ("Linear", (5, 3), {}, [(4, 5)]),
    ("Linear", (5, 3), {"bias": False}, [(2, 4, 5)]),
    ("Bilinear", (3, 4, 5), {}, [(6, 3), (6, 4)]),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, [(2, 4, 9)]),
    ("Conv1d", (4, 6, 4), {"padding": "same"}, [(2, 4, 9)]),
    ("Conv2d", (3, 5, 3), {}, [(2, 3, 8, 7)]),
    ("Conv2d", (4, 6, (3, 2)), {"stride": 2, "padding": (1, 0), "dilation": 2}, [(2, 4, 9, 9)]),
    ("Conv2d", (4, 4, 3), {"padding": "same", "groups": 4, "bias": False}, [(2, 4, 6, 6)]),
    ("Conv2d", (2, 3, 3), {"padding": 1, "padding_mode": "reflect"}, [(2, 2, 6, 6)]),
    ("Conv2d", (2, 3, 3), {"padding": 1, "padding_mode": "replicate"}, [(2, 2, 6, 6)]),
    ("Conv2d", (2, 3, 3), {"padding": (1, 2), "padding_mode": "circular"}, [(2, 2, 6, 6)]),
    ("Conv3d", (2, 4, (2, 3, 1)), {"stride": (1, 2, 1), "padding": 1}, [(2, 2, 5, 6, 3)]),
    ("Conv3d", (2, 4, 2), {"padding": "same", "groups": 2, "bias": False}, [(2, 2, 4, 3, 5)]),
    ("Conv3d", (2, 3, 3), {"padding": 1, "padding_mode": "circular"}, [(2, 2, 3, 4, 4)]),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, [(2, 4, 5)]),
    ("ConvTranspose2d", (3, 5, 3), {"stride": 2, "output_padding": 1}, [(2, 3, 4, 5)]),
    ("ConvTranspose2d", (4, 4, (3, 2)), {"dilation": 2, "bias": False}, [(4, 4, 5)]),
    ("ConvTranspose3d", (2, 3, 2), {"stride": (1, 2, 1), "padding": (0, 1, 0)}, [(2, 2, 3, 3, 4)]),
    ("BatchNorm1d", (4,), {}, [(6, 4)]),
    ("BatchNorm2d", (4,), {}, [(6, 4, 3, 3)]),
    ("BatchNorm2d", (4,), {"affine": False, "momentum": None}, [(6, 4, 3, 3)]),
    ("InstanceNorm2d", (4,), {"affine": True}, [(2, 4, 5, 5)]),
    ("BatchNorm1d", (4,), {}, [(3, 4, 5)]),
    ("BatchNorm3d", (4,), {}, [(2, 4, 2, 3, 2)]),
    ("InstanceNorm1d", (4,), {}, [(4, 5)]),
    ("InstanceNorm1d", (4,), {"affine": True, "track_running_stats": True}, [(3, 4, 5)]),
    ("InstanceNorm2d", (4,), {"track_running_stats": True, "momentum": 0.3}, [(3, 4, 5, 2)]),
    ("InstanceNorm3d", (4,), {"affine": True}, [(2, 4, 5, 2, 3)]),
    ("LayerNorm", (6,), {}, [(3, 4, 6)]),
    ("LayerNorm", ((4, 6),), {"bias": False}, [(3, 4, 6)]),
    ("RMSNorm", (6,), {"eps": 1e-6}, [(3, 4, 6)]),
    ("GroupNorm", (2, 6), {}, [(3, 6, 4, 4)]),
    ("MaxPool2d", (2,), {}, [(2, 3, 6, 6)]),
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, [(2, 3, 7, 8)]),
    ("MaxPool1d", (2,), {}, [(2, 3, 6)]),
    ("AvgPool1d", (2,), {}, [(2, 3, 6)]),
    ("AvgPool2d", (3,), {"stride": 2, "padding": 1, "count_include_pad": False}, [(2, 3, 7, 8)]),
    ("AdaptiveAvgPool2d", ((3, 2),), {}, [(2, 3, 7, 8)]),
    ("AdaptiveAvgPool2d", ((None, 1),), {}, [(2, 3, 7, 8)]),
    ("AdaptiveAvgPool1d", (3,), {}, [(2, 3, 8)]),
    ("AdaptiveMaxPool2d", ((3, 2),), {}, [(2, 3, 7, 8)]),
    ("MaxPool3d", (2,), {"stride": 1, "padding": 1}, [(2, 2, 3, 4, 5)]),
    ("AvgPool3d", ((2, 1, 3),), {"count_include_pad": False, "padding": (1, 0, 1)}, [(2, 4, 4, 6)]),
    ("LPPool1d", (2, 2), {"ceil_mode": True}, [(2, 3, 7)]),
    ("LPPool2d", (2, (2, 3)), {"stride": 1}, [(2, 3, 5, 6)]),
    ("LPPool3d", (2, 2), {}, [(1, 2, 4, 4, 5)]),
    ("AdaptiveAvgPool3d", ((2, None, 1),), {}, [(2, 3, 5, 4, 3)]),
    ("AdaptiveMaxPool1d", (3,), {}, [(2, 3, 7)]),
    ("AdaptiveMaxPool3d", (2,), {"return_indices": True}, [(2, 3, 5, 4, 3)]),
    ("ConstantPad1d", (2, 0.5), {}, [(2, 3, 4)]),
    ("ConstantPad3d", ((1, 0, 2, 1, 0, 1), -1.0), {}, [(2, 1, 3, 4, 2)]),
    ("ZeroPad2d", ((1, 2, 0, 1),), {}, [(2, 3, 4, 5)]),
    ("ReflectionPad1d", (2,), {}, [(2, 3, 4)]),
    ("ReflectionPad2d", ((1, 2, 0, 1),), {}, [(3, 4, 5)]),
    ("ReflectionPad3d", (1,), {}, [(2, 1, 3, 4, 2)]),
    ("ReplicationPad2d", (2,), {}, [(2, 3, 4, 5)]),
    ("ReplicationPad3d", ((0, 1, 2, 0, 1, 1),), {}, [(2, 1, 3, 4, 2)]),
    ("CircularPad1d", ((1, 3),), {}, [(2, 3, 4)]),
    ("CircularPad3d", (1,), {}, [(2, 1, 3, 4, 2)]),
    ("Upsample", (), {"scale_factor": 2}, [(2, 3, 4)]),
    ("Upsample", (), {"size": (7, 5), "mode": "bilinear"}, [(2, 3, 4, 6)]),
    (
        "Upsample",
        (),
        {"scale_factor": (1.5, 2), "mode": "bicubic", "align_corners": True},
        [(2, 3, 4, 6)],
    ),
    ("UpsamplingBilinear2d", (), {"scale_factor": 2}, [(2, 3, 4, 6)]),
    ("UpsamplingNearest2d", (), {"size": 6}, [(2, 3, 4, 6)]),
    ("Fold", ((4, 5), 2), {"padding": 1}, [(2, 8, 30)]),
    ("Unfold", ((2, 3),), {"stride": (1, 2), "dilation": (2, 1)}, [(2, 3, 6, 7)]),
    ("LocalResponseNorm", (3,), {"alpha": 0.1}, [(2, 5, 4, 3)]),
    ("Flatten", (), {}, [(2, 3, 4)]),
    ("Unflatten", (1, (2, 3)), {}, [(2, 6, 4)]),
    ("ReLU", (), {}, [(4, 5)]),
    ("ReLU6", (), {}, [(4, 5)]),
    ("GELU", (), {}, [(4, 5)]),
    ("GELU", (), {"approximate": "tanh"}, [(4, 5)]),
    ("SiLU", (), {}, [(4, 5)]),
    ("Mish", (), {}, [(4, 5)]),
    ("Sigmoid", (), {}, [(4, 5)]),
    ("Tanh", (), {}, [(4, 5)]),
    ("LogSigmoid", (), {}, [(4, 5)]),
    ("LeakyReLU", (0.2,), {}, [(4, 5)]),
    ("ELU", (1.5,), {}, [(4, 5)]),
    ("CELU", (1.5,), {}, [(4, 5)]),
    ("SELU", (), {}, [(4, 5)]),
    ("Softplus", (2.0,), {}, [(4, 5)]),
    ("Softsign", (), {}, [(4, 5)]),
    ("Hardtanh", (-0.5, 0.7), {}, [(4, 5)]),
    ("Hardsigmoid", (), {}, [(4, 5)]),
    ("Hardswish", (), {}, [(4, 5)]),
    ("Tanhshrink", (), {}, [(4, 5)]),
    ("Threshold", (0.1, -2.0), {}, [(4, 5)]),
    ("PReLU", (3,), {}, [(4, 3, 5)]),
    ("GLU", (), {}, [(4, 6)]),
    ("Softmax", (1,), {}, [(4, 5)]),
    ("Softmin", (1,), {}, [(4, 5)]),
    ("LogSoftmax", (0,), {}, [(4, 5)]),
    ("CosineSimilarity", (), {}, [(4, 5), (4, 5)]),
    ("PairwiseDistance", (), {}, [(4, 5), (4, 5)]),
    ("MultiheadAttention", (8, 2), {}, [(5, 3, 8), (6, 3, 8), (6, 3, 8)]),
    ("MultiheadAttention", (8, 2), {"batch_first": True}, [(3, 5, 8), (3, 6, 8), (3, 6, 8)]),
    ("MultiheadAttention", (8, 2), {"kdim": 3, "vdim": 4}, [(5, 2, 8), (6, 2, 3), (6, 2, 4)]),
    (
        "MultiheadAttention",
        (8, 2),
        {"add_bias_kv": True, "add_zero_attn": True},
        [(5, 2, 8), (6, 2, 8), (6, 2, 8)],
    ),
    ("TransformerEncoderLayer", (8, 2, 16), {"dropout": 0.0}, [(5, 3, 8)]),
    (
        "TransformerEncoderLayer",
        (8, 2, 16),
        {"dropout": 0.0, "norm_first": True, "batch_first": True, "activation": "gelu"},
        [(5, 3, 8)],
    ),
    ("TransformerDecoderLayer", (8, 2, 16), {"dropout": 0.0}, [(5, 3, 8), (4, 3, 8)]),
    ("Transformer", (8, 2, 2, 1, 16), {"dropout": 0.0}, [(5, 3, 8), (4, 3, 8)]),
    (
        "Transformer",
        (8, 2, 1, 2, 16),
        {"dropout": 0.0, "norm_first": True, "batch_first": True, "bias": False},
        [(3, 5, 8), (3, 4, 8)],
    ),
    ("PixelShuffle", (2,), {}, [(2, 8, 3, 4)]),
    ("PixelUnshuffle", (2,), {}, [(2, 2, 6, 4)]),
    ("ChannelShuffle", (3,), {}, [(2, 6, 3)]),
    ("Hardshrink", (), {}, [(4, 5)]),
    ("Softshrink", (0.3,), {}, [(4, 5)]),
    ("Softmax2d", (), {}, [(2, 4, 3, 3)]),
    ("Identity", (3,), {"unused": 1}, [(4, 5)]),
]


@pytest.mark.parametrize("case", MODULES, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
@pytest.mark.parametrize("train", [True, False])
def test_module(case, train):
    name, args, kwargs, shapes = case
    ours, theirs = getattr(nn, name)(*args, **kwargs), getattr(torch.nn, name)(*args, **kwargs)
    check(ours, theirs, *[normal(*shape) for shape in shapes], train=train)


def test_embedding():
    ours, theirs = nn.Embedding(7, 4, padding_idx=2), torch.nn.Embedding(7, 4, padding_idx=2)
    check(ours, theirs, np.array([[1, 2, 3], [6, 0, 2]]))
    ours, theirs = nn.Embedding(7, 4, max_norm=0.5), torch.nn.Embedding(7, 4, max_norm=0.5)
    copy_weights(ours, theirs)
    mine, other = both(np.array([1, 5, 5]))
    close(ours(mine), theirs(other))
    close(ours.weight, theirs.weight)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode):
    arguments = {"mode": mode, "padding_idx": 2, "norm_type": 1.0, "max_norm": 3.0}
    ours, theirs = nn.EmbeddingBag(7, 4, **arguments), torch.nn.EmbeddingBag(7, 4, **arguments)
    check(ours, theirs, np.array([[1, 2, 3], [6, 0, 2]]))
    check(ours, theirs, np.array([1, 2, 3, 6, 0]), np.array([0, 3, 3]))


@pytest.mark.parametrize("mask_type", ["bool", "float"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_masks(mask_type, need_weights):
    ours, theirs = nn.MultiheadAttention(8, 2), torch.nn.MultiheadAttention(8, 2)
    copy_weights(ours, theirs)
    x, other = both(normal(5, 3, 8))
    causal = np.triu(np.ones((5, 5), bool), 1)
    padding = np.zeros((3, 5), bool)
    padding[1, 3:] = True
    if mask_type == "float":
        causal = np.where(causal, -np.inf, 0.0).astype(np.float32)
        padding = np.where(padding, -np.inf, 0.0).astype(np.float32)
    (m, tm), (p, tp) = both(causal), both(padding)
    out, weights = ours(x, x, x, attn_mask=m, key_padding_mask=p, need_weights=need_weights)
    expected, their_weights = theirs(
        other, other, other, attn_mask=tm, key_padding_mask=tp, need_weights=need_weights
    )
    close(out, expected)
    assert (weights is None) == (their_weights is None)
    if need_weights:
        close(weights, their_weights)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_transformer_masks(norm_first, batch_first):
    args = (8, 2, 2, 2, 16, 0.0)
    options = {"norm_first": norm_first, "batch_first": batch_first, "activation": "gelu"}
    ours, theirs = nn.Transformer(*args, **options), torch.nn.Transformer(*args, **options)
    copy_weights(ours, theirs)
    assert repr(ours) == repr(theirs)
    shapes = ((3, 5, 8), (3, 4, 8)) if batch_first else ((5, 3, 8), (4, 3, 8))
    (src, other_src), (tgt, other_tgt) = (both(normal(*shape), True) for shape in shapes)
    padding = np.zeros((3, 5), bool)
    padding[1, 3:] = True
    tgt_padding = np.zeros((3, 4), bool)
    tgt_padding[2, 3:] = True
    memory_mask = np.triu(np.ones((4, 5), bool), 3)
    results = []
    for model, library, a, b in ((ours, aten, src, tgt), (theirs, torch, other_src, other_tgt)):
        causal = model.generate_square_subsequent_mask(4)
        out = model(
            a,
            b,
            tgt_mask=causal,
            memory_mask=library.tensor(memory_mask),
            src_key_padding_mask=library.tensor(padding),
            tgt_key_padding_mask=library.tensor(np.where(tgt_padding, -np.inf, 0).astype("f")),
            memory_key_padding_mask=library.tensor(padding),
            tgt_is_causal=True,
        )
        (out * out).sum().backward()
        results.append((out, a.grad, b.grad, [p.grad for p in model.parameters()]))
    for mine, theirs_ in zip(results[0][:3], results[1][:3], strict=True):
        close(mine, theirs_, 1e-3, 1e-4)
    for mine, theirs_ in zip(results[0][3], results[1][3], strict=True):
        close(mine, theirs_, 1e-3, 1e-4)


CLASSES = np.array([0, 2, 1, 4, 3, 2])
LOSSES = [
    ("CrossEntropyLoss", {}, "scores", "classes"),
    ("CrossEntropyLoss", {"label_smoothing": 0.1}, "scores", "classes"),
    ("CrossEntropyLoss", {"ignore_index": 2}, "scores", "classes"),
    ("CrossEntropyLoss", {"ignore_index": 2, "label_smoothing": 0.2}, "scores", "classes"),
    ("CrossEntropyLoss", {"label_smoothing": 0.1}, "scores", "probabilities"),
    ("CrossEntropyLoss", {}, "map", "map classes"),
    ("NLLLoss", {}, "scores", "classes"),
    ("MSELoss", {}, "scores", "values"),
    ("L1Loss", {}, "scores", "values"),
    ("SmoothL1Loss", {"beta": 0.5}, "scores", "values"),
    ("HuberLoss", {"delta": 0.5}, "scores", "values"),
    ("BCELoss", {}, "probabilities", "probabilities"),
    ("BCEWithLogitsLoss", {}, "scores", "probabilities"),
    ("KLDivLoss", {}, "scores", "probabilities"),
    ("KLDivLoss", {"log_target": True}, "scores", "values"),
    ("HingeEmbeddingLoss", {}, "scores", "signs"),
    ("SoftMarginLoss", {}, "scores", "signs"),
    ("PoissonNLLLoss", {"full": True}, "scores", "counts"),
    ("MultiMarginLoss", {}, "scores", "classes"),
    ("MultiMarginLoss", {"p": 2, "margin": 0.5}, "scores", "classes"),
    ("MultiLabelMarginLoss", {}, "scores", "label lists"),
    ("MultiLabelSoftMarginLoss", {}, "scores", "probabilities"),
]


def loss_data(kind):
    if kind == "classes":
        return CLASSES
    if kind == "map classes":
        return RNG.integers(0, 4, (3, 5))
    if kind == "map":
        return normal(3, 4, 5)
    if kind == "probabilities":
        scores = np.exp(normal(6, 5))
        return scores / scores.sum(1, keepdims=True)
    if kind == "label lists":
        lists = np.full((6, 5), -1)
        for row in lists:
            count = RNG.integers(0, 6)
            row[:count] = RNG.permutation(5)[:count]
        return lists
    if kind == "signs":
        return np.sign(normal(6, 5))
    if kind == "counts":
        return RNG.integers(0, 6, (6, 5)).astype(np.float32)
    return normal(6, 5)


WEIGHTED = (
    "CrossEntropyLoss",
    "NLLLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "MultiMarginLoss",
    "MultiLabelSoftMarginLoss",
)
LOSS_CASES = [(*case, False) for case in LOSSES]
LOSS_CASES += [(*case, True) for case in LOSSES if case[0] in WEIGHTED]


@pytest.mark.parametrize("case", LOSS_CASES, ids=lambda c: f"{c[0]}-{c[1]}-{c[3]}-{c[4]}")
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_loss(case, reduction):
    name, kwargs, input_kind, target_kind, weighted = case
    mine, theirs = dict(kwargs), dict(kwargs)
    if weighted:
        weight = np.abs(normal(4 if input_kind == "map" else 5)) + 0.1
        mine["weight"], theirs["weight"] = both(weight)
    (x, tx), (y, ty) = both(loss_data(input_kind), True), both(loss_data(target_kind))
    out = getattr(nn, name)(reduction=reduction, **mine)(x, y)
    expected = getattr(torch.nn, name)(reduction=reduction, **theirs)(tx, ty)
    close(out, expected)
    out.sum().backward()
    expected.sum().backward()
    close(x.grad, tx.grad)


def test_losses_of_two_inputs():
    (a, ta), (b, tb), (c, tc) = (both(normal(6, 5)) for _ in range(3))
    sign, tsign = both(np.sign(normal(6)))
    close(
        nn.TripletMarginLoss(swap=True)(a, b, c), torch.nn.TripletMarginLoss(swap=True)(ta, tb, tc)
    )
    close(
        nn.CosineEmbeddingLoss(margin=0.1)(a, b, sign),
        torch.nn.CosineEmbeddingLoss(margin=0.1)(ta, tb, tsign),
    )
    margin = {"margin": 0.3}
    close(
        nn.MarginRankingLoss(**margin)(a[:, 0], b[:, 0], sign),
        torch.nn.MarginRankingLoss(**margin)(ta[:, 0], tb[:, 0], tsign),
    )
    var, tvar = both(np.abs(normal(6, 5)))
    close(
        nn.GaussianNLLLoss(full=True)(a, b, var), torch.nn.GaussianNLLLoss(full=True)(ta, tb, tvar)
    )
    weight, tweight = both(np.abs(normal(5)))
    close(
        F.binary_cross_entropy_with_logits(a, b, pos_weight=weight),
        torch.nn.functional.binary_cross_entropy_with_logits(ta, tb, pos_weight=tweight),
    )
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        w, tw = both(np.abs(normal(6, 5)))
        close(
            getattr(F, name)(a, b, weight=w), getattr(torch.nn.functional, name)(ta, tb, weight=tw)
        )
    close(
        F.kl_div(a, var, reduction="batchmean"),
        torch.nn.functional.kl_div(ta, tvar, reduction="batchmean"),
    )


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pad(mode):
    x, tx = both(normal(2, 3, 5, 6), True)
    amounts = (2, 1, 0, 3)
    out, expected = F.pad(x, amounts, mode), torch.nn.functional.pad(tx, amounts, mode)
    close(out, expected)
    (out * out).sum().backward()
    (expected * expected).sum().backward()
    close(x.grad, tx.grad)
    if mode == "constant":
        close(F.pad(x, (-1, 2), value=3.0), torch.nn.functional.pad(tx, (-1, 2), value=3.0))
        close(F.pad(x, (-1, -2)), torch.nn.functional.pad(tx, (-1, -2)))


def test_clipping():
    arrays = [normal(3, 4), normal(5)]
    for norm_type in (1.0, 2.0, 3.0, float("inf")):
        pairs = [both(a, True) for a in arrays]
        for mine, other in pairs:
            mine.grad, other.grad = mine.detach().clone(), other.detach().clone()
        total = nn.utils.clip_grad_norm_([p[0] for p in pairs], 0.7, norm_type)
        expected = torch.nn.utils.clip_grad_norm_([p[1] for p in pairs], 0.7, norm_type)
        close(total, expected)
        for mine, other in pairs:
            close(mine.grad, other.grad)


def test_initialiser_statistics():
    for name, args in [
        ("xavier_uniform_", {}),
        ("xavier_normal_", {"gain": 2.0}),
        ("kaiming_uniform_", {"a": 0.3}),
        ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}),
        ("trunc_normal_", {"std": 0.7, "a": -1.0, "b": 1.5}),
        ("orthogonal_", {"gain": 2.0}),
    ]:
        ours = getattr(nn.init, name)(aten.empty((200, 300)), **args).numpy()
        theirs = getattr(torch.nn.init, name)(torch.empty(200, 300), **args).numpy()
        np.testing.assert_allclose(ours.std(), theirs.std(), rtol=0.03)
        np.testing.assert_allclose(ours.mean(), theirs.mean(), atol=0.02)


@pytest.mark.parametrize("cutoffs", [[4], [3, 7], [2, 4, 9]])
@pytest.mark.parametrize("head_bias", [False, True])
def test_adaptive_softmax(cutoffs, head_bias):
    args = (16, 12, cutoffs, 2.0, head_bias)
    ours = nn.AdaptiveLogSoftmaxWithLoss(*args)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(*args)
    copy_weights(ours, theirs)
    assert repr(ours) == repr(theirs)
    (x, tx), (y, ty) = both(normal(20, 16), True), both(np.arange(20) % 12)
    mine, other = ours(x, y), theirs(tx, ty)
    close(mine.output, other.output)
    (mine.output.sum() + mine.loss).backward()
    (other.output.sum() + other.loss).backward()
    close(x.grad, tx.grad)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        close(a.grad, b.grad)
    close(ours.log_prob(x), theirs.log_prob(tx))
    assert ours.predict(x).tolist() == theirs.predict(tx).tolist()
    close(ours(x[3], y[3]).output, theirs(tx[3], ty[3]).output)


def test_triplets_with_a_distance():
    (a, ta), (b, tb), (c, tc) = (both(normal(6, 5), True) for _ in range(3))
    for options in ({}, {"swap": True, "margin": 2.0, "reduction": "none"}):
        out = nn.TripletMarginWithDistanceLoss(
            distance_function=lambda x, y: (x - y).abs().amax(-1), **options
        )(a, b, c)
        expected = torch.nn.TripletMarginWithDistanceLoss(
            distance_function=lambda x, y: (x - y).abs().amax(-1), **options
        )(ta, tb, tc)
        close(out, expected)
        default = nn.TripletMarginWithDistanceLoss(**options)(a, b, c)
        close(default, torch.nn.TripletMarginWithDistanceLoss(**options)(ta, tb, tc))


@pytest.mark.parametrize("out_features", [(), (4, 3)])
def test_linear_cross_entropy(out_features):
    settings = {"out_features": out_features, "bias": True, "label_smoothing": 0.1}
    ours = nn.LinearCrossEntropyLoss(5, 7, **settings)
    theirs = torch.nn.LinearCrossEntropyLoss(5, 7, **settings)
    copy_weights(ours, theirs)
    (x, tx), (y, ty) = both(normal(6, 5), True), both(RNG.integers(0, 7, (6, *out_features)))
    loss, expected = ours(x, y), theirs(tx, ty)
    close(loss, expected)
    loss.backward()
    expected.backward()
    close(x.grad, tx.grad)
    close(ours.linear.weight.grad, theirs.linear.weight.grad)


@pytest.mark.filterwarnings("ignore")
def test_deprecated_reductions():
    (x, tx), (y, ty) = both(normal(4, 3)), both(normal(4, 3))
    for average, reduce in (
        (True, None),
        (False, None),
        (None, False),
        (None, True),
        (True, False),
    ):
        close(
            F.mse_loss(x, y, average, reduce), torch.nn.functional.mse_loss(tx, ty, average, reduce)
        )


LAZY = [
    ("LazyLinear", (3,), {}, (2, 5)),
    ("LazyConv1d", (4, 3), {"stride": 2}, (2, 6, 9)),
    ("LazyConv2d", (4, 3), {"groups": 2, "bias": False}, (2, 6, 9, 9)),
    ("LazyBatchNorm1d", (), {}, (3, 6)),
    ("LazyBatchNorm2d", (), {"affine": False}, (3, 6, 4, 4)),
    ("LazyInstanceNorm1d", (), {}, (3, 6, 4)),
    ("LazyInstanceNorm2d", (), {"track_running_stats": False}, (3, 6, 4, 4)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", LAZY, ids=lambda c: c[0])
def test_lazy(case):
    name, args, kwargs, shape = case
    ours, theirs = getattr(nn, name)(*args, **kwargs), getattr(torch.nn, name)(*args, **kwargs)
    assert repr(ours) == repr(theirs)
    x = normal(*shape)
    mine, other = both(x)
    ours(mine)
    theirs(other)
    assert type(ours).__name__ == type(theirs).__name__
    if "Norm" in name:  # the first call has changed the statistics
        for a, b in zip(ours.buffers(), theirs.buffers(), strict=True):
            close(a, b)
    check(ours, theirs, x)


CONTAINERS = {
    "sequence": lambda m: m.Sequential(m.Linear(2, 2), m.ReLU()) * 2,
    "names": lambda m: m.ModuleDict({"a": m.Linear(2, 3), "b": m.Identity()}),
    "list": lambda m: m.ModuleList([m.Linear(2, 2), m.Linear(2, 2), m.Tanh()]),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers(name):
    ours, theirs = CONTAINERS[name](nn), CONTAINERS[name](torch.nn)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert len(list(ours.parameters())) == len(list(theirs.parameters()))
