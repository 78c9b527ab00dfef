"""The habits of development: `./bazelw run //tools:dev -- {gen,check,fix,test} [arguments]`.

gen    generates the operators' files; prints where they lie
check  ruff and clang-format on the whole tree or on the given paths; mypy and the edges between layers, which are of the whole tree
fix    lets ruff and clang-format settle the format
test   bazelw test, by default //...
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# `bazel run` says where the tree is; without it the program stands in the tree itself.
_ROOT = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", Path(__file__).resolve().parents[1]))


def _run(*command: str) -> int:
    print("$", " ".join(command[:8]), "..." if len(command) > 8 else "", flush=True)
    return subprocess.run(command, cwd=_ROOT).returncode


def _tool(name: str) -> str:
    return str(Path(sys.prefix, "bin", name))


def _files(paths: list[str], *suffixes: str) -> list[str]:
    """Files of the tree, or of the given paths, that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *paths]
    listed = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout
    return [p for p in listed.splitlines() if p.endswith(suffixes) and Path(_ROOT, p).exists()]


def gen(arguments: list[str]) -> int:
    code = _run(str(_ROOT / "bazelw"), "build", "//packages/aten:generated", *arguments)
    if not code:
        folder = _ROOT / "bazel-bin" / "packages" / "aten"
        print("\n".join(str(path) for path in sorted(folder.glob("**/generated/*"))))
    return code


def check(arguments: list[str]) -> int:
    python = _files(arguments, ".py", ".pyi")
    cpp = _files(arguments, ".cc", ".h")
    codes = [0]
    if python:  # without a path ruff takes the whole tree, Markdown too
        codes.append(_run(_tool("ruff"), "check", *python))
        codes.append(_run(_tool("ruff"), "format", "--check", "-q", *python))
    if cpp:
        codes.append(_run(_tool("clang-format"), "--dry-run", "--Werror", *cpp))
    if python:
        built = _run(str(_ROOT / "bazelw"), "build", "//packages/argand:stubs")
        codes.append(built or _run(sys.executable, "-m", "tools.build.check_types"))
    codes.append(_run(sys.executable, "-m", "tools.build.layers", "--root", "."))
    return max(codes)


def fix(arguments: list[str]) -> int:
    python = _files(arguments, ".py", ".pyi")
    cpp = _files(arguments, ".cc", ".h")
    codes = [0]
    if python:
        codes.append(_run(_tool("ruff"), "check", "--fix", "-q", *python))
        codes.append(_run(_tool("ruff"), "format", "-q", *python))
    if cpp:
        codes.append(_run(_tool("clang-format"), "-i", *cpp))
    return max(codes)


def test(arguments: list[str]) -> int:
    return _run(str(_ROOT / "bazelw"), "test", *(arguments or ["//..."]))


_COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "gen": gen,
    "check": check,
    "fix": fix,
    "test": test,
}


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in _COMMANDS:
        print(__doc__, file=sys.stderr)
        return 2
    return _COMMANDS[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
