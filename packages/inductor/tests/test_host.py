"""A compiled graph runs in a program without Python."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from specs import LOCATION, buffer, step, tensor

import argand_aten
import argand_c10
from argand_inductor.artifact import build
from argand_inductor.artifact.make import make_program, write_sources
from argand_inductor.program import Buf, ExternStep, ProgramSpec


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("host") / "host"
    libraries = Path(argand_c10.__file__ or "").parent
    source = Path(__file__).parent / "host.c"
    includes = [f"-I{folder}" for folder in build.include_folders()]
    library = libraries / "libargand_c10.so.2"
    command = ["gcc", "-O1", *includes, str(source), str(library), f"-Wl,-rpath,{libraries}"]
    subprocess.run([*command, "-ldl", "-o", str(out)], check=True)
    return out


def run(host: Path, *arguments: str) -> list[str]:
    done = subprocess.run([host, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def kernels_only() -> ProgramSpec:
    return ProgramSpec(
        (tensor("x", "s0"),),
        (Buf("o"),),
        (
            step("a0 * a0", "x", "b", sizes=("s0",)),
            step("a0 + a1", "x", "b", "o", sizes=("s0",)),
        ),
        {"b": buffer("s0"), "o": buffer("s0")},
    )


def test_kernels(host: Path) -> None:
    assert run(host, make_program(kernels_only()).path) == ["6 2 0 0 2 6 ", "0"]


def test_operators(host: Path) -> None:
    spec = ProgramSpec(
        (tensor("x", 6),),
        (Buf("o"),),
        (
            ExternStep("relu", (Buf("x"),), ("r",), location=LOCATION),
            step("a0 + 1", "r", "o", sizes=(6,)),
        ),
        {"r": buffer(6), "o": buffer(6)},
    )
    path = make_program(spec).path
    aten = Path(argand_aten.__file__ or "").parent / "libargand_aten.so.2"
    assert run(host, path, str(aten)) == ["1 1 1 1 2 3 ", "0"]
    done = subprocess.run([host, path], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "operator 'relu' is not registered; load the library" in done.stderr


def test_wrong_inputs_are_refused(host: Path) -> None:
    spec = ProgramSpec(
        (tensor("x", 7),), (Buf("o"),), (step("a0", "x", "o", sizes=(7,)),), {"o": buffer(7)}
    )
    done = subprocess.run(
        [host, make_program(spec).path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "got float32 [6] with strides [1] on cpu, expected float32 [7]" in done.stderr


def test_the_library_describes_itself() -> None:
    program = make_program(kernels_only())
    data = Path(program.path).read_bytes()
    found = re.search(rb'\{"format":1,.*?\]\}\0', data)
    assert found
    manifest = json.loads(found.group()[:-1])
    assert manifest["inputs"][0] == {
        "name": "x",
        "dtype": "float32",
        "sizes": ["s0"],
        "strides": [1],
        "device": "cpu",
    }
    assert manifest["abi"] == argand_c10.ABI_VERSION
    assert manifest["tier"] == argand_c10.cpu.tier()


def test_generated_code_needs_no_system_headers(tmp_path: Path) -> None:
    """Only headers of the compiler itself and ours."""
    sources = write_sources(kernels_only())
    (tmp_path / "program.c").write_text(sources.program)
    (tmp_path / "kernels.c").write_text(build.unit_source(sources.kernels))
    includes = [f"-I{folder}" for folder in build.include_folders()]
    for name in ("program.c", "kernels.c"):
        done = subprocess.run(
            ["gcc", "-ffreestanding", "-nostdinc", "-M", *includes, *_gcc_headers(), name],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "Python.h" not in done.stdout


def _gcc_headers() -> list[str]:
    done = subprocess.run(
        ["gcc", "-print-file-name=include"], capture_output=True, text=True, check=True
    )
    return [f"-I{done.stdout.strip()}"]
