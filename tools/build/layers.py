"""The edges between layers, checked on a source tree: imports by import-linter, includes and names by a scan.

    python -m tools.build.layers --root DIR

Prints every forbidden edge and exits with 1 if there is one. The rules come from tools/layers.bzl alone.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_SOURCES = (".py", ".pyi", ".h", ".cc", ".c", ".yaml")
_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')


@dataclass(frozen=True)
class Layers:
    """tools/layers.bzl, which is valid Python, as functions."""

    names: tuple[str, ...]
    allowed: Callable[[str], list[str]]
    import_name: Callable[[str], str]


def load_layers(root: Path) -> Layers:
    """Reads the list of layers of the tree at `root`."""
    scope: dict[str, object] = {}
    path = root / "tools" / "layers.bzl"
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return Layers(tuple(scope["LAYERS"]), scope["allowed_layers"], scope["import_name"])  # type: ignore[arg-type]


def packages(root: Path, layers: Layers) -> list[str]:
    """The layers whose Python package exists in the tree."""
    return [
        name
        for name in layers.names
        if (root / "packages" / name / layers.import_name(name) / "__init__.py").exists()
    ]


def import_contract(root: Path, layers: Layers) -> str:
    """The import-linter configuration: for each layer, every layer that it may not import."""
    present = packages(root, layers)
    lines = ["[importlinter]", "root_packages ="]
    lines += [f"    {layers.import_name(name)}" for name in present]
    for name in present:
        forbidden = [n for n in present if n != name and n not in layers.allowed(name)]
        if forbidden:
            lines += ["", f"[importlinter:contract:{name}]", "type = forbidden"]
            lines += [f"name = {layers.import_name(name)} imports only what tools/layers.bzl lists"]
            lines += ["source_modules =", f"    {layers.import_name(name)}", "forbidden_modules ="]
            lines += [f"    {layers.import_name(n)}" for n in forbidden]
    return "\n".join(lines) + "\n"


def check_imports(root: Path, layers: Layers) -> list[str]:
    """Runs import-linter on the contract; returns its report if it is broken."""
    if len(packages(root, layers)) < 2:
        return []
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(
        str(root / "packages" / name) for name in layers.names
    )
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "importlinter.ini")
        config.write_text(import_contract(root, layers))
        command = [
            str(Path(sys.prefix, "bin", "lint-imports")),
            "--config",
            str(config),
            "--no-cache",
        ]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return [done.stdout + done.stderr] if done.returncode else []


def _source_files(root: Path, name: str, import_name: str) -> Iterator[Path]:
    for folder in ("csrc", import_name, "registry"):
        base = root / "packages" / name / folder
        yield from sorted(p for p in base.rglob("*") if p.suffix in _SOURCES and p.is_file())


def check_includes(root: Path, layers: Layers) -> list[str]:
    """#include lines that reach into a layer that the including one may not use."""
    problems = []
    for name in layers.names:
        allowed = {name, *layers.allowed(name)}
        for path in sorted((root / "packages" / name).rglob("*")):
            if path.suffix not in (".h", ".cc", ".c", ".inc"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = _INCLUDE.match(line)
                parts = found.group(1).split("/") if found else []
                if len(parts) > 1 and parts[0] == "packages" and parts[1] not in allowed:
                    problems.append(
                        f"{path.relative_to(root)}:{number}: {name} must not include {found.group(1)}; "  # type: ignore[union-attr]
                        f"it may use {', '.join(sorted(allowed))} (tools/layers.bzl)"
                    )
    return problems


def check_names(root: Path, layers: Layers) -> list[str]:
    """Sources that name a layer above, be it in a string or a comment."""
    problems = []
    for name in layers.names:
        unknown = [
            n for n in layers.names if n not in (name, *layers.allowed(name)) and n != "argand"
        ]
        if not unknown:
            continue
        pattern = re.compile(
            r"\bargand_(" + "|".join(unknown) + r")\b|\bpackages/(" + "|".join(unknown) + r")\b"
        )
        for path in _source_files(root, name, layers.import_name(name)):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = pattern.search(line)
                if found and not _INCLUDE.match(line):
                    problems.append(
                        f"{path.relative_to(root)}:{number}: {name} must not name {found.group(0)}; "
                        "upper layers register with lower ones"
                    )
    return problems


def check(root: Path) -> list[str]:
    """All forbidden edges of the tree."""
    layers = load_layers(root)
    return check_imports(root, layers) + check_includes(root, layers) + check_names(root, layers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("."))
    problems = check(parser.parse_args().root.resolve())
    print("\n".join(problems) if problems else "layers: every edge is allowed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
