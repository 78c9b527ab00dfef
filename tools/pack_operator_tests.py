"""Packs the generated operator tests for a machine without Bazel: `./bazelw run //tools:pack_operator_tests -- FOLDER`.

The folder then holds the tests, what they import, and a conftest.py with the option --device. Beside the installed wheels they want pytest, NumPy,
SciPy and PyYAML:

    python -m pytest FOLDER --device=cuda
    python -m pytest FOLDER --device=cuda --shard=1/4    # every fourth test, from the first one on
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

_CONFTEST = '''"""Chooses the device under test before the tests are imported."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def pytest_addoption(parser):
    parser.addoption("--device", default=os.environ.get("ARGAND_TEST_DEVICE", "cpu"), help="device of the tests' tensors")
    parser.addoption("--shard", default="1/1", help="K/N: every N-th test, from the K-th one on")


def pytest_configure(config):
    os.environ["ARGAND_TEST_DEVICE"] = config.getoption("--device")


def pytest_collection_modifyitems(config, items):
    first, step = map(int, config.getoption("--shard").split("/"))
    if not 1 <= first <= step:
        raise pytest.UsageError(f"--shard: got {first}/{step}, expected K/N with 1 <= K <= N")
    items[:] = items[first - 1 :: step]
'''


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    out = Path(os.environ.get("BUILD_WORKING_DIRECTORY", os.getcwd()), sys.argv[1])
    root = Path(__file__).absolute().parents[1]
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for path in sorted((root / "tools" / "codegen").rglob("*.py")):
        target = out / path.relative_to(root)
        if "tests" not in path.parts[-2:-1]:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    (out / "tools" / "__init__.py").touch()
    for path in sorted((root / "packages" / "aten" / "generated" / "tests").glob("*.py")):
        shutil.copyfile(path, out / path.name)
    (out / "conftest.py").write_text(_CONFTEST)
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
