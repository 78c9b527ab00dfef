"""Whole networks exported, saved, loaded and packaged, with sizes that vary, against the networks themselves."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import pytest
from models import TransformerSizes, define_gpt2, define_llama, define_resnet

import argand
import argand.nn.functional as F
from argand import nn
from argand.export import Dim, ExportedProgram, export, load, load_package, package, save


class DigitNet(nn.Module):
    """The network of examples/digits.py."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.25)
        self.hidden = nn.Linear(64 * 2 * 2, 128)
        self.scores = nn.Linear(128, 10)

    def forward(self, x: Any) -> Any:
        x = self.pool(F.relu(self.norm1(self.conv1(x))))
        x = self.pool(F.relu(self.norm2(self.conv2(x))))
        x = self.dropout(x.flatten(1))
        return self.scores(F.relu(self.hidden(x)))


def all_forms(program: ExportedProgram, folder: Path) -> list[Any]:
    """The program read from a file, and its package."""
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    digest = package(program, folder / "net.ag2p")
    return [load(file), load_package(folder / "net.ag2p", digest=digest)]


def test_digits(tmp_path: Path) -> None:
    argand.manual_seed(0)
    net = DigitNet().eval()
    batch = Dim("batch", max=512)
    program = export(net, (argand.randn(8, 1, 8, 8),), dynamic_shapes={"x": {0: batch}})
    forms = all_forms(program, tmp_path)
    for n in (1, 8, 129):
        x = argand.randn(n, 1, 8, 8)
        expected = net(x)
        assert argand.equal(program(x), expected)
        for form in forms:
            assert argand.allclose(form(x), expected, rtol=1e-5, atol=1e-6)
            assert argand.equal(form(x).argmax(1), expected.argmax(1))


def test_digits_in_training_mode(tmp_path: Path) -> None:
    """Statistics of batches are kept in the package as in the module; dropout draws the same numbers."""
    argand.manual_seed(0)
    net = DigitNet()
    batch = Dim("batch", min=2, max=512)
    program = export(net, (argand.randn(8, 1, 8, 8),), dynamic_shapes={"x": {0: batch}})
    _, packed = all_forms(program, tmp_path)
    reference = copy.deepcopy(net)
    for seed, n in enumerate((8, 33)):
        x = argand.randn(n, 1, 8, 8)
        argand.manual_seed(seed)
        expected = reference(x)
        argand.manual_seed(seed)
        assert argand.allclose(packed(x), expected, rtol=1e-4, atol=1e-5)
    for name, value in reference.named_buffers():
        assert argand.allclose(packed.state_dict[name], value, rtol=1e-5, atol=1e-6), name
    assert packed.state_dict["norm1.num_batches_tracked"].item() == 2


@pytest.mark.parametrize("define", [define_gpt2, define_llama])
def test_transformers(define: Any, tmp_path: Path) -> None:
    argand.manual_seed(0)
    sizes = TransformerSizes()
    net = define(argand)().eval()
    tokens = argand.randint(0, sizes.vocabulary, (3, 9))
    dims = {0: Dim("batch"), 1: Dim("length", min=2, max=sizes.length)}
    program = export(net, (tokens,), dynamic_shapes=(dims,))
    forms = all_forms(program, tmp_path)
    for shape in ((1, 2), (3, 9), (5, sizes.length)):
        tokens = argand.randint(0, sizes.vocabulary, shape)
        expected = logits(net(tokens))
        for form in (program, *forms):
            assert argand.allclose(logits(form(tokens)), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match=r"expected length with length in \[2, 24\]"):
        forms[1](argand.randint(0, sizes.vocabulary, (1, 25)))


def logits(result: Any) -> Any:
    """GPT-2 gives a loss beside them, None without targets."""
    if not isinstance(result, tuple):
        return result
    found, loss = result
    assert loss is None
    return found


def test_resnet(tmp_path: Path) -> None:
    argand.manual_seed(0)
    net = define_resnet(argand)().eval()
    program = export(net, (argand.randn(2, 3, 32, 32),), dynamic_shapes=({0: Dim("batch")},))
    for n in (1, 5):
        x = argand.randn(n, 3, 32, 32)
        for form in (program, *all_forms(program, tmp_path)):
            assert argand.allclose(form(x), net(x), rtol=1e-4, atol=1e-4)
