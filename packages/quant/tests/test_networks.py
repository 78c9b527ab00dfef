"""Networks put together at random: prepared they compute what they did, converted something near it, and on integers what converted ones do."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from networks import default_quantizer, noise_ratio, quantized

import argand_aten as aten
import argand_autograd as autograd
import argand_nn as nn
import argand_nn.functional as F
from argand_c10 import Module, Tensor, manual_seed
from argand_export import Dim, export
from argand_quant import prepare_pt2e
from argand_quant.lowering import lower_quantized

KINDS = ("conv", "normed", "depthwise", "relu", "relu6", "add", "max", "average", "cat", "sigmoid", "slice", "permute")  # fmt: skip


class Network(Module):
    """(N, channels, 9, 9) to (N, 3)."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.channels = width = rng.choice([1, 3, 4])
        self.kinds = [rng.choice(KINDS) for _ in range(rng.randint(2, 6))]
        self.layers = nn.ModuleList()
        for kind in self.kinds:
            made, width = self._layer(rng, kind, width)
            self.layers.append(made)
        self.head, self.scores = nn.Linear(width, 7), nn.Linear(7, 3)

    @staticmethod
    def _layer(rng: random.Random, kind: str, width: int) -> tuple[Module, int]:
        if kind not in ("conv", "normed", "depthwise"):
            return nn.Identity(), {"cat": 2 * width, "slice": max(1, width // 2)}.get(kind, width)
        wide = width if kind == "depthwise" else rng.choice([2, 5, 8, 16])
        size, groups = rng.choice([1, 3]), width if kind == "depthwise" else 1
        bias = rng.random() < 0.6
        layers: list[Module] = [
            nn.Conv2d(width, wide, size, padding=size // 2, groups=groups, bias=bias)
        ]
        layers += [nn.BatchNorm2d(wide)] * (kind == "normed")
        layers += [rng.choice([nn.ReLU, nn.ReLU6])()] * rng.randint(0, 1)
        return nn.Sequential(*layers), wide

    def forward(self, x: Tensor) -> Tensor:
        before = x
        for kind, layer in zip(self.kinds, self.layers, strict=True):
            before, x = x, self._step(kind, layer, x, before)
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return self.scores(aten.tanh(self.head(x)))

    @staticmethod
    def _step(kind: str, layer: Module, x: Tensor, before: Tensor) -> Tensor:
        if kind == "relu":
            return F.relu(x)
        if kind == "relu6":
            return F.relu6(x)
        if kind == "add":
            return x + (before if before.shape == x.shape else x * 0.5)
        if kind == "max":
            return F.max_pool2d(x, 3, 1, 1)
        if kind == "average":
            return F.avg_pool2d(x, 3, 1, 1)
        if kind == "cat":
            return aten.cat([x, x], 1)
        if kind == "sigmoid":
            return aten.sigmoid(x) * 2
        if kind == "slice":
            return x[:, : max(1, x.shape[1] // 2)]
        return x.permute(0, 1, 3, 2) if kind == "permute" else layer(x)


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int) -> None:
    rng = random.Random(seed)
    manual_seed(seed)
    net = Network(rng)
    x = aten.randn(8, net.channels, 9, 9)
    net(x)
    net.eval()
    dynamic, shapes = rng.random() < 0.3, {"x": {0: Dim("batch", max=64)}}
    with autograd.no_grad():
        program = export(net, (x,), dynamic_shapes=shapes if rng.random() < 0.5 else None)
        wanted = net(x)
        assert noise_ratio(prepare_pt2e(program, default_quantizer())(x), wanted) > 90
        converted: Any = quantized(program, [(x,), (x,)], default_quantizer(is_dynamic=dynamic))
        assert noise_ratio(converted(x), wanted) > 25
        lowered = copy.copy(converted)
        lowered.graph_module = copy.deepcopy(converted.graph_module)
        lower_quantized(lowered.graph_module)
        assert str(lowered.graph) != str(converted.graph)
        assert noise_ratio(lowered(x), converted(x)) > 30
