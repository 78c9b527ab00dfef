"""Runs argand_aten_cuda.compile from the source tree without the package's extension, so that compiling kernels waits for no C++."""

from __future__ import annotations

import importlib
import os
import sys
import types


def main() -> int:
    # The package as a bare folder, or several: sources, and generated modules where Bazel put them.
    folders = os.environ.get("ARGAND_KERNEL_PATH", "").split(os.pathsep)
    package = types.ModuleType("argand_aten_cuda")
    package.__path__ = [
        os.path.abspath(folder)
        for folder in [*filter(None, folders), os.path.join(os.path.dirname(__file__), "argand_aten_cuda")]
    ]
    sys.modules["argand_aten_cuda"] = package
    return int(importlib.import_module("argand_aten_cuda.compile").main(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
