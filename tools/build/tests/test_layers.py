"""Only the edges of tools/layers.bzl exist, and each kind of forbidden edge is refused."""

import shutil
from pathlib import Path

import pytest

from tools.build import layers

ROOT = Path.cwd()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the checks read."""
    for folder in ("packages", "tools"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.so*", "testdata")
        )
    return tmp_path


def _first_package_above(tree: Path) -> tuple[str, str]:
    """A layer and one above it, both present."""
    found = layers.load_layers(tree)
    present = layers.packages(tree, found)
    for low in present:
        for high in present:
            if low in found.allowed(high):
                return low, high
    raise AssertionError(f"no two layers on top of each other in {present}")


def test_the_tree_has_no_forbidden_edge() -> None:
    assert layers.check(ROOT) == []


def test_edges_are_closed_and_have_no_cycle() -> None:
    found = layers.load_layers(ROOT)
    for name in found.names:
        allowed = found.allowed(name)
        assert name not in allowed
        assert all(set(found.allowed(low)) <= set(allowed) for low in allowed)


def test_forbidden_import_is_refused(tree: Path) -> None:
    low, high = _first_package_above(tree)
    found = layers.load_layers(tree)
    module = tree / "packages" / low / found.import_name(low) / "forbidden.py"
    module.write_text(f"def f():\n    import {found.import_name(high)}\n")
    (report,) = layers.check_imports(tree, found)
    assert f"{found.import_name(low)}.forbidden -> {found.import_name(high)}" in report


def test_forbidden_include_is_refused(tree: Path) -> None:
    found = layers.load_layers(tree)
    source = tree / "packages" / "c10" / "csrc" / "forbidden.cc"
    source.write_text('#include "packages/autograd/csrc/derivative.h"\n')
    (problem,) = layers.check_includes(tree, found)
    assert problem.startswith(
        "packages/c10/csrc/forbidden.cc:1: c10 must not include packages/autograd"
    )


def test_naming_an_upper_layer_is_refused(tree: Path) -> None:
    found = layers.load_layers(tree)
    source = tree / "packages" / "c10" / "csrc" / "forbidden.cc"
    source.write_text("// filled by argand_autograd\n")
    assert "c10 must not name argand_autograd" in layers.check_names(tree, found)[0]
