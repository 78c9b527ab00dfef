"""A copy of the tree in which a test may change files and run Bazel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType


class WorkspaceCopy:
    """Copies the tree that a test's runfiles point to; runs Bazel there with the outer build's caches.

    A context manager: the nested server is stopped at the end. The test's target lists `//:tree` as data, so that it runs
    again when the tree changes, and is tagged `local`, since a sandbox cannot hold another Bazel.
    """

    def __init__(self, runfiles: Path, target: Path) -> None:
        self.root = target / "workspace"
        self._bazel_root = target / "bazel"
        source = (runfiles / "WORKSPACE").resolve().parent
        # Found by its file and not through data: what .bazelignore names is part of the tree too.
        ignored = shutil.ignore_patterns(
            "bazel-*", ".git", "__pycache__", "user.bazelrc*", ".*_cache"
        )
        shutil.copytree(source, self.root, ignore=ignored)

    def __enter__(self) -> WorkspaceCopy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bazel("shutdown")

    def bazel(self, *arguments: str, folder: str = ".") -> subprocess.CompletedProcess[str]:
        """Runs bazelw with the arguments in `folder`; its output is in stdout."""
        # The environment of the outer build is <cache>/python/<name>/venv; its wheels and actions are reused.
        cache = Path(sys.prefix).resolve().parents[2]
        environment = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("TEST_", "RUNFILES", "PYTHON", "BUILD_"))
        }
        environment.update(XDG_CACHE_HOME=str(cache.parent), HOME=str(self._bazel_root.parent))
        environment["ARGAND_PYTHON"] = os.path.realpath(sys.executable)
        command = [
            str(self.root / "bazelw"),
            f"--output_user_root={self._bazel_root}",
            "--max_idle_secs=60",
            *arguments,
        ]
        return subprocess.run(
            command,
            cwd=self.root / folder,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
