"""An outside workspace that depends on one package builds and runs."""

from pathlib import Path

from tools.build.workspace_copy import WorkspaceCopy


def test_consumer_builds_and_runs(tmp_path: Path) -> None:
    with WorkspaceCopy(Path.cwd(), tmp_path) as copy:
        done = copy.bazel("test", "//...", folder="examples/consumer")
        assert done.returncode == 0, done.stdout[-6000:]
