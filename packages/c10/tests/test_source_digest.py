"""Names for packages' sources."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from argand_c10.source_digest import source_digest


def digest_in_new_process(folder: Path) -> str:
    code = "from argand_c10.source_digest import source_digest; print(source_digest('edited'))"
    path = os.pathsep.join([str(folder), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.strip()


def test_edits_give_another_digest(tmp_path: Path) -> None:
    inner = tmp_path / "edited" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "edited" / "__init__.py").write_text("raise RuntimeError('never imported')")
    (inner / "passes.py").write_text("x = 1")
    first = digest_in_new_process(tmp_path)
    (inner / "notes.txt").write_text("no source")
    assert digest_in_new_process(tmp_path) == first
    (inner / "passes.py").write_text("x = 22")
    second = digest_in_new_process(tmp_path)
    os.utime(inner / "passes.py", ns=(0, 0))
    third = digest_in_new_process(tmp_path)
    (inner / "libedited.so.2").write_bytes(b"code")
    fourth = digest_in_new_process(tmp_path)
    (inner / "_C.cpython-311-x86_64-linux-gnu.so").write_bytes(b"code")
    assert len({first, second, third, fourth, digest_in_new_process(tmp_path)}) == 5


def test_each_package_has_its_own() -> None:
    assert source_digest("argand_c10") != source_digest("json")
