"""How tests start argand-run."""

from __future__ import annotations

import os
import subprocess
import sys


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "argand_distributed.launcher", *map(str, arguments)]


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "OMP_NUM_THREADS": "1",
    }


def run(*arguments: object, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), env=environment(), capture_output=True, text=True, timeout=timeout
    )
