"""Wheels of different ABIs give one clear sentence at import, not a loader's error."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


def _unpack(target: Path) -> None:
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    for wheel in Path.cwd().glob(f"packages/*/dist/*-{tag}-*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)


def _import(package: str, site: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    environment["PYTHONPATH"] = str(site)
    environment["PYTHONDONTWRITEBYTECODE"] = (
        "1"  # the edit below keeps the size, and may keep the time stamp
    )
    command = [sys.executable, "-c", f"import {package}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("package", ["argand_aten", "argand_autograd"])
def test_a_wheel_against_c10_of_another_abi(package: str, tmp_path: Path) -> None:
    _unpack(tmp_path)
    assert _import(package, tmp_path).returncode == 0
    version = tmp_path / "argand_c10" / "_version.py"
    text, count = re.subn(r"^ABI_VERSION = 2$", "ABI_VERSION = 3", version.read_text(), flags=re.M)
    assert count == 1
    version.write_text(text)
    done = _import(package, tmp_path)
    assert done.returncode == 1
    error = done.stderr.strip().splitlines()[-1]
    assert error.startswith("ImportError: argand")
    assert "was built for ABI 2 of argand-c10" in error and "provides ABI 3" in error
    assert "pip install" in error
