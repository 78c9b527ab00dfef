"""The build itself refuses an edge that tools/layers.bzl does not list: an include, an import, a Bazel dependency."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.build.workspace_copy import WorkspaceCopy


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkspaceCopy]:
    with WorkspaceCopy(Path.cwd(), tmp_path_factory.mktemp("refusal")) as made:
        yield made


def test_forbidden_include_does_not_compile(copy: WorkspaceCopy) -> None:
    source = copy.root / "packages/c10/csrc/core/forbidden.cc"
    source.write_text('#include "packages/autograd/csrc/derivative.h"\n')
    try:
        done = copy.bazel("build", "//packages/c10:core")
    finally:
        source.unlink()
    assert done.returncode != 0
    assert "forbidden.cc" in done.stdout and "packages/autograd/csrc/derivative.h" in done.stdout, (
        done.stdout[-4000:]
    )


def test_forbidden_import_makes_no_wheel(copy: WorkspaceCopy) -> None:
    module = copy.root / "packages/c10/argand_c10/forbidden.py"
    module.write_text("def f():\n    import argand_autograd\n")
    try:
        done = copy.bazel("build", "//packages/c10:wheel")
    finally:
        module.unlink()
    assert done.returncode != 0
    assert "argand_c10/forbidden.py:2: argand_c10 must not import argand_autograd" in done.stdout, (
        done.stdout[-4000:]
    )


def test_forbidden_dependency_is_invisible(copy: WorkspaceCopy) -> None:
    build = copy.root / "packages/c10/BUILD.bazel"
    before = build.read_text()
    build.write_text(before + '\nfilegroup(name = "forbidden", srcs = ["//packages/nn:py"])\n')
    try:
        done = copy.bazel("build", "--nobuild", "//packages/c10:forbidden")
    finally:
        build.write_text(before)
    assert done.returncode != 0
    assert "is not visible from target '//packages/c10:forbidden'" in done.stdout, done.stdout[
        -4000:
    ]
