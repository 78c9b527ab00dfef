"""Packages of quantized programs: integer operators in Python, in a process that did not import them, and in a C program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import argand_aten as aten
import argand_c10 as c10
from argand_c10 import Module
from argand_export import export, load, load_package, package, runtime_files, save
from argand_quant import operators as ops

U8, S8 = (0, 255, c10.uint8), (-128, 127, c10.int8)


class Net(Module):
    """A convolution and a linear layer on integers."""

    def __init__(self) -> None:
        super().__init__()
        c10.manual_seed(3)
        self.register_buffer("kernel", aten.randint(-128, 128, [16, 3, 3, 3]).to(c10.int8))
        self.register_buffer("weight", aten.randint(-128, 128, [10, 16 * 8 * 8]).to(c10.int8))
        self.register_buffer("kernel_scales", aten.rand(16) * 0.01 + 0.001)
        self.register_buffer("scales", aten.rand(10) * 0.01 + 0.001)

    def forward(self, x: Any) -> Any:
        x = ops.dequantize_per_tensor(ops.quantize_per_tensor(x, 0.02, 100, *U8), 0.02, 100, *U8)
        kernel = ops.dequantize_per_channel(self.kernel, self.kernel_scales, None, 0, *S8)
        x = aten.relu(aten.conv2d(x, kernel, None, 1, 1))
        x = ops.quantize_per_tensor(x, 0.1, 0, *U8).flatten(1)
        x = ops.dequantize_per_tensor(x, 0.1, 0, *U8)
        weight = ops.dequantize_per_channel(self.weight, self.scales, None, 0, *S8)
        return aten.linear(x, weight)


@pytest.fixture(scope="module")
def program() -> Any:
    return export(Net(), (aten.zeros(2, 3, 8, 8),))


@pytest.fixture(scope="module")
def path(program: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("packed") / "net.ag2p"
    package(program, made)
    return made


def fill(*sizes: int) -> Any:
    """What the C program fills inputs with."""
    n = 1
    for size in sizes:
        n *= size
    return aten.tensor([((7 * i + 3) % 17 - 8) / 8 for i in range(n)]).reshape(sizes)


def test_package_calls_integer_operators(program: Any, path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        (library,) = json.loads(archive.read("package.json"))["operator_libraries"]
    assert library["module"] == "argand_quant"
    assert {"quantized::qlinear", "quantized::qconv2d"} <= set(library["operators"])
    names = [n.target.name for n in program.graph.nodes if isinstance(n.target, c10.Operator)]
    assert "linear" in names  # the program itself is as it was
    x = fill(2, 3, 8, 8)
    result, expected = load_package(path)(x), program(x)
    assert (result - expected).abs().max() <= 2e-2 * expected.abs().max()


def test_saved_program_is_the_same(program: Any, tmp_path: Path) -> None:
    save(program, tmp_path / "net.ag2")
    x = fill(2, 3, 8, 8)
    assert (load(tmp_path / "net.ag2")(x) == program(x)).all()


def test_other_processes_import_the_operators(path: Path) -> None:
    code = (
        "import sys; import argand_aten as aten; from argand_export import load_package\n"
        f"net = load_package({str(path)!r})\n"
        "assert 'argand_quant.operators' in sys.modules and 'argand_dynamo' not in sys.modules\n"
        "print(tuple(net(aten.zeros(2, 3, 8, 8)).shape))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "(2, 10)\n", done.stderr[-2000:]


def run_in_c(path: Path, folders: list[Path]) -> subprocess.CompletedProcess[str]:
    found = os.environ.get("ARGAND_RUN_PACKAGE")
    if not found:
        pytest.skip("ARGAND_RUN_PACKAGE does not name the C program")
    files = runtime_files()
    command = [
        os.path.abspath(found),
        "--c10",
        files.c10,
        "--aten",
        files.aten,
        "--blas",
        files.blas,
        path,
        "2,3,8,8",
    ]
    environment = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(map(str, folders))}
    return subprocess.run(
        [str(c) for c in command], env=environment, capture_output=True, text=True, check=False
    )


def test_c_program(path: Path) -> None:
    (library,) = runtime_files().operators
    done = run_in_c(path, [library.parent])
    assert done.returncode == 0, done.stderr
    expected = load_package(path)(fill(2, 3, 8, 8)).flatten().tolist()
    numbers = [float(word) for word in done.stdout.splitlines()[0].partition("]")[2].split()]
    assert numbers == pytest.approx(expected, rel=1e-5)


def test_c_program_without_the_library(path: Path) -> None:
    done = run_in_c(path, [])
    assert done.returncode != 0
    assert "it calls operators of libargand_quant.so" in done.stderr
