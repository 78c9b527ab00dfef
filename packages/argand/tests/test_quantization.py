"""Quantization by PyTorch's names: a program written as its tutorials are, run eagerly, compiled, and from a package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import argand as torch
import argand.nn as nn
import argand.quantization
from argand.ao.quantization import fake_quantize, observer, quantizer
from argand.ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e
from argand.ao.quantization.quantizer import x86_inductor_quantizer as xiq


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.last = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.conv(x)))
        x = nn.functional.max_pool2d(x, 2)
        return self.last(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


def test_tutorial(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Net().eval()
    example = (torch.randn(4, 3, 8, 8),)
    exported = torch.export.export(model, example).module()
    cpu = xiq.X86InductorQuantizer()
    cpu.set_global(xiq.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(exported, cpu)
    for _ in range(4):
        prepared(torch.randn(4, 3, 8, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converted = convert_pt2e(prepared)
    x = torch.randn(4, 3, 8, 8)
    with torch.no_grad():
        wanted, got = model(x), converted(x)
        assert float((got - wanted).abs().max()) < 0.05 * float(wanted.abs().max())
        compiled = torch.compile(converted.module(), fullgraph=True)(x)
        assert float((compiled - got).abs().max()) <= 1e-5
    torch.export.package(converted, tmp_path / "net.ag2p")
    packed = torch.export.load_package(tmp_path / "net.ag2p")(x)
    assert torch.equal(packed, compiled)
    torch.export.save(converted, tmp_path / "net.ag2")
    code = (
        "import sys, argand\n"
        f"program = argand.export.load({str(tmp_path / 'net.ag2')!r})\n"
        "assert 'argand_quant.operators' in sys.modules\n"
        "print(program(argand.ones(4, 3, 8, 8)).tolist())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == converted(torch.ones(4, 3, 8, 8)).tolist()


def test_names() -> None:
    for module in (fake_quantize, observer, quantizer, xiq):
        for name in module.__all__:
            assert getattr(module, name) is getattr(argand.quantization, name)
    assert torch.per_tensor_affine is argand.quantization.QScheme.PER_TENSOR_AFFINE
