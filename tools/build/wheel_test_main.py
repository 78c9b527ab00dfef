"""Tries a wheel in an environment of its own; the program behind the rule argand_wheel_test."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from pathlib import Path

_CHECK = """
import importlib, importlib.metadata, json, sys
package = sys.argv[1]
importlib.import_module(package)
loaded = sorted({name.split(".")[0] for name in sys.modules})
print(json.dumps([name for name in loaded if name == "argand" or name.startswith("argand_")]))
"""


def distribution_names(wheel: Path) -> set[str]:
    """Normalised names of the wheel's dependencies that are Argand's own."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode()
    required = re.findall(r"^Requires-Dist: ([A-Za-z0-9_.-]+)(?![^\n]*extra ==)", text, re.M)
    return {r.replace("-", "_").lower() for r in required if r.lower().startswith("argand")}


def closure(wheel: Path, siblings: list[Path]) -> set[str]:
    """Argand packages that the wheel may load: itself and its declared dependencies, theirs included."""
    by_name = {path.name.split("-")[0]: path for path in siblings}
    seen = {wheel.name.split("-")[0]}
    frontier = distribution_names(wheel)
    while frontier:
        seen |= frontier
        frontier = (
            set().union(*(distribution_names(by_name[n]) for n in frontier if n in by_name)) - seen
        )
    return seen


def first_example(readme: Path) -> str:
    """The first ```python block."""
    found = re.search(r"^```python\n(.*?)^```", readme.read_text(), re.M | re.S)
    if not found:
        raise SystemExit(f"{readme}: no ```python block; a package's README shows how it is used")
    return textwrap.dedent(found.group(1))


def run(command: list[str], cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--sibling", type=Path, action="append", default=[])
    parser.add_argument("--package", required=True)
    parser.add_argument("--readme", type=Path, required=True)
    arguments = parser.parse_args()
    wheels = Path(sys.prefix).parent / "wheels"
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
        cwd = Path(folder)
        run([sys.executable, "-m", "venv", "--without-pip", str(cwd / "venv")], cwd)
        python = str(cwd / "venv" / "bin" / "python")
        links = [f"--find-links={path.resolve().parent}" for path in arguments.sibling]
        run(
            [
                sys.executable,
                "-m",
                "pip",
                "--python",
                python,
                "install",
                "-q",
                "--no-index",
                "--no-cache-dir",
                f"--find-links={wheels}",
                *links,
                str(arguments.wheel.resolve()),
            ],
            cwd,
        )
        run([sys.executable, "-m", "pip", "--python", python, "check"], cwd)
        loaded = run([python, "-I", "-c", _CHECK, arguments.package], cwd).split("\n")[-2]
        allowed = closure(arguments.wheel, arguments.sibling)
        undeclared = [name for name in json.loads(loaded) if name not in allowed]
        if undeclared:
            raise SystemExit(
                f"import {arguments.package} loads {undeclared}, which its wheel does not declare"
            )
        example = cwd / "example.py"
        example.write_text(first_example(arguments.readme))
        print(run([python, "-I", str(example)], cwd), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
