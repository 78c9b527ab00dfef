"""Every test has a cache of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import argand_aten  # noqa: F401  (operators that programs call)
from argand_c10.disk_cache import DiskCache
from argand_inductor.artifact import cache, load


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    root = tmp_path / "cache"
    root.mkdir(mode=0o700)
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
