"""mypy on all Python of the tree but its tests, which sees the generated types: operators, and Tensor with every layer's methods.

    python -m tools.build.check_types --root DIR --built DIR

`--built` is where Bazel put what it generated: bazel-bin of the tree, after `bazel build //packages/argand:stubs`. Prints mypy's report and exits with its code.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_FOLDERS = ("benchmarks", "docs", "examples", "packages", "tools")
_LEFT_OUT = frozenset({"generated", "testdata", "tests"})
# Stands for packages/c10/argand_c10/_C.pyi, which knows no method of the layers above.
_TENSOR = "packages/argand/argand_c10-stubs/_C.pyi"


def sources(root: Path) -> Iterator[str]:
    """The files to check, relative to `root`."""
    for folder in _FOLDERS:
        for path in sorted(Path(root, folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if not _LEFT_OUT & set(name.split("/")):
                yield name


def check(
    root: Path, built: Path, cache: Path, *programs: Path
) -> subprocess.CompletedProcess[str]:
    """Runs mypy on the tree, and on further programs; its report is in stdout."""
    tensor = built / _TENSOR
    if not tensor.exists():
        raise FileNotFoundError(
            f"check_types: {tensor} is missing; build //packages/argand:stubs first"
        )
    # The folder of the generated stubs, and those of generated modules.
    generated = sorted(str(path) for path in Path(built, "packages").iterdir() if path.is_dir())
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(cache)]
    return subprocess.run(
        [*command, *sources(root), str(tensor), *map(str, programs)],
        cwd=root,
        env={**os.environ, "MYPYPATH": os.pathsep.join(generated)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("."))
    parser.add_argument("--built", type=Path, default=Path("bazel-bin"))
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    done = check(root, arguments.built.resolve(), root / ".mypy_cache")
    print(done.stdout, end="")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
