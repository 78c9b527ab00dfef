"""Compiled convolutions, poolings, resampling, embeddings and distances: the values and gradients of plain ones."""

from __future__ import annotations

import pytest

import argand as torch
import argand.nn.functional as F

FUNCTIONS = {
    "conv3d": lambda s, x, v: F.conv3d(v, v[:, :, :2, :2, :3], padding=1),
    "conv same": lambda s, x, v: F.conv2d(x, x[:, :, :4, :3], padding="same") + 1,
    "conv_transpose1d": lambda s, x, v: F.conv_transpose1d(s, s.transpose(0, 1), None, 2, 1, 1),
    "conv_transpose2d": lambda s, x, v: F.conv_transpose2d(x, x.transpose(0, 1), None, 2).relu(),
    "conv_transpose3d": lambda s, x, v: F.conv_transpose3d(
        v, v.transpose(0, 1)[..., :2], padding=1
    ),
    "max_pool1d": lambda s, x, v: F.max_pool1d(s, 3, 2, 1),
    "max_pool3d": lambda s, x, v: F.max_pool3d(v, 2, 1, return_indices=True)[0],
    "max_unpool2d": lambda s, x, v: F.max_unpool2d(
        *F.max_pool2d(x, 2, return_indices=True), 2, output_size=(6, 7)
    ),
    "avg_pool3d": lambda s, x, v: F.avg_pool3d(v, 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "lp_pool2d": lambda s, x, v: F.lp_pool2d(x.abs() + 0.1, 2, 2),
    "adaptive_avg_pool3d": lambda s, x, v: F.adaptive_avg_pool3d(v, (2, 1, 3)),
    "adaptive_max_pool2d": lambda s, x, v: F.adaptive_max_pool2d(x, (4, 3)),
    "adaptive_max_pool3d": lambda s, x, v: F.adaptive_max_pool3d(v, (2, 1, 3)),
    "fractional_max_pool2d": lambda s, x, v: F.fractional_max_pool2d(
        x, 2, (3, 4), _random_samples=torch.full((2, 3, 2), 0.3)
    ),
    "nearest": lambda s, x, v: F.interpolate(x, scale_factor=1.7) * 2,
    "linear": lambda s, x, v: F.interpolate(s, 9, mode="linear"),
    "bilinear": lambda s, x, v: F.interpolate(x, scale_factor=2, mode="bilinear").sin(),
    "bicubic": lambda s, x, v: F.interpolate(x, (4, 9), mode="bicubic", align_corners=True),
    "antialias": lambda s, x, v: F.interpolate(x, (4, 9), mode="bicubic", antialias=True),
    "trilinear": lambda s, x, v: F.interpolate(v, scale_factor=(2, 1.5, 1), mode="trilinear"),
    "area": lambda s, x, v: F.interpolate(x, 4, mode="area"),
    "grid_sample": lambda s, x, v: F.grid_sample(
        x, x[:, 0, :, :2].tanh().unsqueeze(1) * 1.2, "bicubic", "reflection", False
    ),
    "affine_grid": lambda s, x, v: F.grid_sample(
        x, F.affine_grid(x[:, :2, 0, :3], (2, 3, 4, 5), True), align_corners=True
    ),
    "unfold and fold": lambda s, x, v: F.fold(
        F.unfold(x, 3, padding=1).sin(), (6, 7), 3, padding=1
    ),
    "pads": lambda s, x, v: F.pad(x, (2, 1, 0, 3), "reflect") + F.pad(x, (2, 1, 0, 3), "replicate"),
    "embedding_bag": lambda s, x, v: (
        F.embedding_bag(torch.tensor([[0, 1], [1, 1]]), s[0], mode="mean")
        + F.embedding_bag(torch.tensor([0, 1, 1]), s[0], torch.tensor([0, 2]), mode="max")
    ),
    "distances": lambda s, x, v: (
        F.cosine_similarity(s, s.flip(0)) + F.pairwise_distance(s, s.flip(0)).sum()
    ),
    "bilinear map": lambda s, x, v: F.bilinear(s, s * 2, x[0, :, :5, :5]),
    "local_response_norm": lambda s, x, v: F.local_response_norm(x, 2, 0.5),
    "ctc_loss": lambda s, x, v: F.ctc_loss(
        x[0].transpose(0, 1).log_softmax(2),
        torch.tensor([[1], [2], [0]]),
        (6, 5, 6),
        (1, 1, 0),
        blank=3,
    ),
}


def inputs() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(3)
    return torch.randn(2, 3, 5), torch.randn(2, 3, 6, 7), torch.randn(2, 2, 4, 3, 5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    function = FUNCTIONS[name]
    outcomes = []
    for f in (function, torch.compile(function, fullgraph=True)):
        leaves = [t.requires_grad_() for t in inputs()]
        value = f(*leaves)
        (value * value).sum().backward()
        outcomes.append([value.detach(), *(t.grad for t in leaves)])
    for plain, compiled in zip(*outcomes, strict=True):
        assert (plain is None) == (compiled is None)
        if plain is not None:
            torch.testing.assert_close(compiled, plain)


MODULES = {
    "ConvTranspose2d": lambda nn: nn.ConvTranspose2d(3, 4, 3, 2, output_padding=1),
    "Conv2d reflect": lambda nn: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"),
    "Upsample": lambda nn: nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2, mode="bilinear")
    ),
    "MaxPool2d": lambda nn: nn.Sequential(
        nn.ReplicationPad2d(1), nn.MaxPool2d(3, 2), nn.AdaptiveMaxPool2d(2)
    ),
    "Fold": lambda nn: nn.Sequential(nn.Unfold(3, padding=1), nn.Fold((6, 7), 3, padding=1)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    torch.manual_seed(0)
    module = MODULES[name](torch.nn)
    x = inputs()[1]
    torch.testing.assert_close(torch.compile(module, fullgraph=True)(x), module(x))
