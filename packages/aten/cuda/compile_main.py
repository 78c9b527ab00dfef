"""Runs argand_aten_cuda.compile without the package's extension, so that compiling kernels waits for no C++.

    compile_main.py [FOLDER ...] OPTIONS

The folders hold the package's modules: the sources, and generated ones where Bazel put them; by default the folder beside this file.
"""

from __future__ import annotations

import importlib
import os
import sys
import types


def add_triton() -> None:
    """Makes Triton importable: under Bazel it has an environment of its own."""
    try:
        from tools.build.extra_environment import add_to_path
    except ImportError:
        return
    reason = add_to_path("triton")
    if reason:
        raise SystemExit(
            f"compile: {reason}; --define=archives=no makes a wheel without code objects"
        )


def main() -> int:
    arguments = sys.argv[1:]
    folders = []
    while arguments and not arguments[0].startswith("-"):
        folders.append(os.path.abspath(arguments.pop(0)))
    package = types.ModuleType("argand_aten_cuda")
    package.__path__ = folders or [
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "argand_aten_cuda")
    ]
    sys.modules["argand_aten_cuda"] = package
    add_triton()
    return int(importlib.import_module("argand_aten_cuda.compile").main(arguments))


if __name__ == "__main__":
    sys.exit(main())
