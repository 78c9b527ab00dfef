"""A copy of the tree in which a test may change files and run Bazel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType


class WorkspaceCopy:
    """Copies the tree from a test's runfiles; runs Bazel there with the outer build's caches.

    A context manager: the nested server is stopped at the end. The test's target lists `//:tree` as data and is tagged
    `local`, since a sandbox cannot hold another Bazel.
    """

    def __init__(self, runfiles: Path, target: Path) -> None:
        self.root = target / "workspace"
        self._bazel_root = target / "bazel"
        self._folder = self.root
        shutil.copytree(runfiles, self.root, ignore=shutil.ignore_patterns("__pycache__", "external", "_main"))
        for path in self.root.rglob("*"):
            if path.is_file():
                path.chmod(path.stat().st_mode | 0o200)

    def __enter__(self) -> WorkspaceCopy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.bazel("shutdown")

    def bazel(self, *arguments: str, folder: str = ".") -> subprocess.CompletedProcess[str]:
        """Runs bazelw with the arguments in `folder`; its output is in stdout."""
        # The environment of the outer build is <cache>/python/<name>/venv; its wheels and actions are reused.
        cache = Path(sys.prefix).resolve().parents[2]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("TEST_", "RUNFILES", "PYTHON", "BUILD_"))}
        environment.update(XDG_CACHE_HOME=str(cache.parent), HOME=str(self._bazel_root.parent))
        command = [str(self.root / "bazelw"), f"--output_user_root={self._bazel_root}", "--max_idle_secs=60", *arguments]
        return subprocess.run(
            command, cwd=self.root / folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
