"""Every test has a cache of its own, in which only the executor lies compiled."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import argand_aten  # noqa: F401  (operators that programs call)
from argand_c10.disk_cache import DiskCache
from argand_inductor.artifact import cache, load
from argand_inductor.artifact.make import make_program
from argand_inductor.program import ProgramSpec


@pytest.fixture(scope="session")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds what every program needs."""
    root = tmp_path_factory.mktemp("executor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGAND_CACHE_DIR", str(root))
        patch.delenv("ARGAND_CC", raising=False)
        make_program(ProgramSpec((), (), (), {}))
    return root


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executor: Path) -> Iterator[Path]:
    root = tmp_path / "cache"
    root.mkdir(mode=0o700)
    shutil.copytree(executor / cache.kernels_cache._name, root / cache.kernels_cache._name)
    monkeypatch.setenv("ARGAND_CACHE_DIR", str(root))
    for module, name in (
        (cache, "programs"),
        (cache, "kernels_cache"),
        (load, "_programs"),
        (load, "_constants"),
    ):
        old: DiskCache = getattr(module, name)
        monkeypatch.setattr(module, name, DiskCache(old._name))
    yield root
