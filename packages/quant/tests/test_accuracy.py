"""What trained networks lose by 8 bits: the digits network at most 0.5 points, a small GPT at most 5% of perplexity."""

from __future__ import annotations

import math
import pydoc_data.topics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from networks import default_quantizer, quantized
from sklearn.datasets import load_digits

import argand_aten as aten
import argand_autograd as autograd
import argand_nn as nn
import argand_nn.functional as F
from argand_c10 import Module, Tensor, float32, manual_seed
from argand_export import Dim, ExportedProgram, export, load_package, package
from argand_nn.optim import AdamW


def compiled(program: ExportedProgram, folder: Path) -> Any:
    """With integer kernels."""
    package(program, folder / "program.ag2p")
    return load_package(folder / "program.ag2p")


# ---- digits


class DigitNet(Module):
    """Scans (N, 1, 8, 8) to scores (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(2)
        self.hidden, self.scores = nn.Linear(128, 64), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(F.relu(self.norm1(self.conv1(x))))
        x = self.pool(F.relu(self.norm2(self.conv2(x))))
        return self.scores(F.relu(self.hidden(x.flatten(1))))


@pytest.fixture(scope="module")
def digits() -> Any:
    """A trained network, scans to calibrate with, held-out scans and their digits."""
    manual_seed(0)
    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    images = aten.from_numpy((found.images[order, None] / 16).astype(np.float32))
    labels = aten.from_numpy(found.target[order].astype(np.int64))
    train, test = slice(0, 1400), slice(1400, None)
    net = DigitNet()
    optimizer = AdamW(net.parameters(), lr=4e-3)
    for _ in range(4):
        for start in range(0, 1400, 64):
            part = slice(start, min(start + 64, 1400))
            optimizer.zero_grad()
            F.cross_entropy(net(images[part]), labels[part]).backward()
            optimizer.step()
    return net.eval(), images[train][:256], images[test], labels[test]


def accuracy(net: Any, images: Tensor, labels: Tensor) -> float:
    with autograd.no_grad():
        return float((net(images).argmax(1) == labels).to(float32).mean()) * 100


def test_digits_static(digits: Any, tmp_path: Path) -> None:
    net, calibration, images, labels = digits
    program = export(net, (calibration[:4],), dynamic_shapes=({0: Dim("batch", max=4096)},))
    calls = [(part,) for part in calibration.split(64)]
    converted = quantized(program, calls, default_quantizer())
    plain = accuracy(net, images, labels)
    assert plain > 95
    assert accuracy(compiled(converted, tmp_path), images, labels) >= plain - 0.5


def test_digits_dynamic(digits: Any, tmp_path: Path) -> None:
    net, calibration, images, labels = digits
    program = export(net, (calibration[:4],), dynamic_shapes=({0: Dim("batch", max=4096)},))
    with pytest.warns(UserWarning, match="convolutions have no dynamic"):
        converted = quantized(program, [(calibration,)], default_quantizer(is_dynamic=True))
    packed = compiled(converted, tmp_path)
    assert accuracy(packed, images, labels) >= accuracy(net, images, labels) - 0.5


# ---- a small GPT

CONTEXT, WIDTH, HEADS = 48, 64, 4


class Block(Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        n, length, _ = x.shape
        parts = self.attend(self.norm1(x)).view(n, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(n, length, WIDTH))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class GPT(Module):
    """Characters (N, CONTEXT) to scores of the next ones; the table of characters is also the last layer's weight."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.table, self.places = nn.Embedding(characters, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, i: Tensor) -> Tensor:
        x = self.table(i) + self.places(aten.arange(CONTEXT))
        return F.linear(self.norm(self.blocks(x)), self.table.weight)


@pytest.fixture(scope="module")
def gpt() -> Any:
    """A network trained for a short while on Python's help texts, windows to calibrate with, and held-out ones."""
    manual_seed(0)
    text = "".join(pydoc_data.topics.topics[k] for k in sorted(pydoc_data.topics.topics))[:200_000]
    known = {c: n for n, c in enumerate(sorted(set(text)))}
    codes = np.array([known[c] for c in text], np.int64)
    rng = np.random.default_rng(0)

    def windows(count: int, low: int, high: int) -> Any:
        starts = rng.integers(low, high - CONTEXT - 1, count)
        found = codes[starts[:, None] + np.arange(CONTEXT + 1)]
        return aten.from_numpy(found[:, :-1].copy()), aten.from_numpy(found[:, 1:].copy())

    net = GPT(len(known))
    with autograd.no_grad():
        for table in (net.table, net.places):
            table.weight.mul_(0.1)
    optimizer = AdamW(net.parameters(), lr=3e-3)
    for _ in range(120):
        inputs, targets = windows(16, 0, 180_000)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
    return net.eval(), windows(32, 0, 180_000)[0], windows(32, 180_000, 200_000), len(known)


def perplexity(net: Any, inputs: Tensor, targets: Tensor) -> float:
    with autograd.no_grad():
        return math.exp(F.cross_entropy(net(inputs).flatten(0, 1), targets.flatten()).item())


@pytest.mark.parametrize("dynamic", [False, True])
def test_gpt(gpt: Any, dynamic: bool, tmp_path: Path) -> None:
    net, calibration, held_out, characters = gpt
    converted = quantized(net, [(calibration,)], default_quantizer(is_dynamic=dynamic))
    plain = perplexity(net, *held_out)
    assert plain < characters / 4  # it has learned something
    assert perplexity(compiled(converted, tmp_path), *held_out) <= 1.05 * plain
