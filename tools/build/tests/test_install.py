"""All wheels together: they install from declared dependencies alone, and stay small."""

import os
import subprocess
import sys
from pathlib import Path

WHEELS = sorted(Path.cwd().glob("packages/**/dist/*.whl"))
PYTHON_TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
MIB = 1 << 20


def _run(*command: str) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_wheel_a_layer() -> None:
    names = (
        "aot argand aten aten_cuda autograd c10 distributed dynamo export fx inductor nn quant"
    ).split()
    found = sorted("_".join(wheel.relative_to(Path.cwd()).parts[1:-2]) for wheel in WHEELS)
    assert found == names
    assert all(PYTHON_TAG in wheel.name or "py3-none-any" in wheel.name for wheel in WHEELS)


def test_wheels_take_at_most_30_mib() -> None:
    assert sum(wheel.stat().st_size for wheel in WHEELS) <= 30 * MIB


def test_installed_with_dependencies_at_most_220_mib(tmp_path: Path) -> None:
    target = tmp_path / "site"
    links = [f"--find-links={folder}" for folder in {w.resolve().parent for w in WHEELS}]
    links.append(f"--find-links={Path(sys.prefix).parent / 'wheels'}")
    # No .pyc files: an installer may or may not write them.
    options = ["--no-index", "--no-cache-dir", "--no-compile", "-q", "--target", str(target)]
    _run(sys.executable, "-m", "pip", "install", *options, *links, "argand")
    sizes = {p: p.stat().st_size for p in target.rglob("*") if p.is_file()}
    assert (target / "argand" / "__init__.py") in sizes
    assert sum(sizes.values()) <= 220 * MIB
