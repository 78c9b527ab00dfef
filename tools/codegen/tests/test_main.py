"""The program: determinism, unchanged files, the index, exit statuses, the real registry through every emitter."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.codegen.tests.support import REGISTRY, SOFTCAP, registry, temporary_environment


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tools.codegen.main", *arguments],
        capture_output=True,
        text=True,
        env=temporary_environment(),
        check=False,
    )


def texts(folder: Path) -> dict[str, str]:
    return {p.name: p.read_text(encoding="utf-8") for p in sorted(folder.iterdir())}


def test_check_counts_operators() -> None:
    done = run("--registry", str(REGISTRY), "--emit", "check")
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout
        == f"{len(registry().operators)} operators in {len(registry().families)} families\n"
    )


def test_faults_give_status_one_and_write_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "- op: f(Tensor self) -> Tensor\n  kind: pointwise\n  expr: selff\n", encoding="utf-8"
    )
    done = run("--registry", str(tmp_path), "--emit", "index", "--out", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "bad.yaml:3:9: error: unknown name 'selff'" in done.stderr
    assert done.stderr.rstrip().endswith("nothing was written")
    assert not (tmp_path / "out").exists()


def test_output_is_the_same_every_time_and_unchanged_files_are_left_alone(tmp_path: Path) -> None:
    arguments = ["--registry", str(REGISTRY), "--emit", "cpp_family", "--family", "activation"]
    assert run(*arguments, "--out", str(tmp_path / "a")).returncode == 0
    assert run(*arguments, "--out", str(tmp_path / "b")).returncode == 0
    assert texts(tmp_path / "a") == texts(tmp_path / "b")
    before = {p.name: os.stat(p).st_mtime_ns for p in (tmp_path / "a").iterdir()}
    assert run(*arguments, "--out", str(tmp_path / "a")).returncode == 0
    assert {p.name: os.stat(p).st_mtime_ns for p in (tmp_path / "a").iterdir()} == before


@pytest.mark.parametrize("emit", ["cpp_family", "python_family"])
def test_a_family_needs_only_its_file_and_the_index(tmp_path: Path, emit: str) -> None:
    assert (
        run("--registry", str(REGISTRY), "--emit", "index", "--out", str(tmp_path)).returncode == 0
    )
    alone = tmp_path / "registry"
    alone.mkdir()
    shutil.copy(REGISTRY / "reduction.yaml", alone)
    family = ["--emit", emit, "--family", "reduction"]
    done = run(
        "--registry",
        str(alone),
        *family,
        "--index",
        str(tmp_path / "index.json"),
        "--out",
        str(tmp_path / "one"),
    )
    assert done.returncode == 0, done.stderr
    assert run("--registry", str(REGISTRY), *family, "--out", str(tmp_path / "all")).returncode == 0
    assert texts(tmp_path / "one") == texts(tmp_path / "all")


def test_each_emit_may_have_its_folder(tmp_path: Path) -> None:
    (tmp_path / "things.yaml").write_text(SOFTCAP, encoding="utf-8")
    arguments = ["--registry", str(tmp_path / "things.yaml"), "--emit", "index", "--emit", "global"]
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    done = run(*arguments, "--out", folders[0], "--out", folders[1])
    assert done.returncode == 0, done.stderr
    assert list(texts(tmp_path / "a")) == ["index.json"]
    assert (tmp_path / "b/kernels.h").exists() and not (tmp_path / "b/index.json").exists()
    done = run(*arguments, *(["--out", folders[0]] * 3))
    assert done.returncode != 0
    assert "one for each --emit" in done.stderr + done.stdout


def test_editing_an_expression_leaves_the_index_alone(tmp_path: Path) -> None:
    source = tmp_path / "registry"
    source.mkdir()
    found = []
    for text in (SOFTCAP, SOFTCAP.replace("cap * tanh(self / cap)", "tanh(self / cap) * cap")):
        (source / "things.yaml").write_text(text, encoding="utf-8")
        assert (
            run(
                "--registry", str(source), "--emit", "index", "--out", str(tmp_path / "out")
            ).returncode
            == 0
        )
        found.append((tmp_path / "out" / "index.json").read_text(encoding="utf-8"))
    assert found[0] == found[1]


def test_python_of_every_family_compiles(tmp_path: Path) -> None:
    emits = ("python_family", "python_global", "test_family", "gradient_test_family")
    arguments = [text for emit in emits for text in ("--emit", emit)]
    assert run("--registry", str(REGISTRY), *arguments, "--out", str(tmp_path)).returncode == 0
    found = texts(tmp_path)
    for name, text in found.items():
        if name.endswith((".py", ".pyi")):
            ast.parse(text, name)
    for family in registry().families:
        assert {
            f"shapes_{family}.py",
            f"derivatives_{family}.py",
            f"composites_{family}.py",
            f"test_{family}.py",
        } <= set(found)
    assert "### softmax" in found["operators.md"]


def test_unknown_family_is_said() -> None:
    done = run("--registry", str(REGISTRY), "--emit", "cpp_family", "--family", "activatoin")
    assert done.returncode != 0
    assert "unknown family 'activatoin'" in done.stderr + done.stdout
