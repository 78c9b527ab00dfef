"""A cache taken to another machine: sources travel, libraries are made there."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from specs import buffer, step, tensor

import argand_aten as A
import argand_c10
from argand_c10 import metrics, records
from argand_inductor import export_cache, import_cache
from argand_inductor.artifact import build, load
from argand_inductor.artifact.make import make_program
from argand_inductor.program import Buf, ExternStep, ProgramSpec


def spec() -> ProgramSpec:
    return ProgramSpec(
        (tensor("x", 8),),
        (Buf("o"),),
        (
            step("a0 + 1", "x", "b", sizes=(8,)),
            ExternStep("mul", (Buf("b"), Buf("k")), ("o",)),
        ),
        {"b": buffer(8), "o": buffer(8)},
        {"k": A.full((8,), 3.0)},
    )


def moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, object]]:
    """An exported cache, and what refers to its program; the cache is then another, empty one."""
    data = make_program(spec()).serialize()
    file = tmp_path / "cache.zip"
    assert export_cache(file) == 1
    monkeypatch.setenv("ARGAND_CACHE_DIR", str(tmp_path / "other"))
    assert load.load(data) is None
    return file, data


def test_programs_are_compiled_where_they_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, data = moved(tmp_path, monkeypatch)
    with zipfile.ZipFile(file) as archive:
        assert not [name for name in archive.namelist() if name.endswith((".so", ".o"))]
    find = build.find_compiler
    monkeypatch.setattr(  # another compiler than where it was exported
        build, "find_compiler", lambda: build.Compiler(find().command, "another")
    )
    before = metrics.counters().get("compiler_runs", 0)
    assert import_cache(file) == 1
    assert metrics.counters()["compiler_runs"] > before
    program = load.load(data)  # type: ignore[arg-type]
    assert program is not None
    x = A.randn(8)
    assert A.equal(program(x)[0], (x + 1) * 3)


def test_other_tiers_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, data = moved(tmp_path, monkeypatch)
    tier = argand_c10.cpu.tier()
    monkeypatch.setattr(argand_c10.cpu, "tier", lambda: tier + 1)
    with records.collect() as found:
        assert import_cache(file) == 0
    assert [r.code for r in found] == ["IN008"]


@pytest.mark.parametrize("include", ["/etc/passwd", "packages/../../x.h", "stdio.h"])
def test_foreign_headers_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, include: str
) -> None:
    file, _ = moved(tmp_path, monkeypatch)
    changed = tmp_path / "changed.zip"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("kernels.json"):
                kernels = json.loads(content)
                kernels[0]["includes"] = [include]
                content = json.dumps(kernels).encode()
            new.writestr(name, content)
    with pytest.raises(ValueError, match="includes"):
        import_cache(changed)


def test_other_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.zip"
    file.write_bytes(b"no zip")
    with pytest.raises(ValueError, match="is no exported cache"):
        import_cache(file)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("format", "something else")
    with pytest.raises(ValueError, match="of this version"):
        import_cache(file)
