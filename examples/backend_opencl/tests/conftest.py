"""Points OpenCL's loader at the platform that the test's environment brings, unless the machine names one."""

from __future__ import annotations

import importlib.metadata
import os
import tempfile
from pathlib import Path


def _runtime() -> Path | None:
    """The library of Intel's OpenCL runtime for CPUs, where its wheel is installed."""
    try:
        files = importlib.metadata.files("intel-opencl-rt") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = [Path(str(f.locate())).resolve() for f in files if f.name == "libintelocl.so"]
    return found[0] if found else None


if "OCL_ICD_VENDORS" not in os.environ and (_library := _runtime()):
    _folder = Path(tempfile.mkdtemp())
    (_folder / "platform.icd").write_text(f"{_library}\n")
    os.environ["OCL_ICD_VENDORS"] = f"{_folder}/"
    os.environ.setdefault("PYOPENCL_COMPILER_OUTPUT", "0")

# The tests compile a thousand programs and run each once.
os.environ.setdefault("PYOPENCL_BUILD_OPTIONS", "-cl-opt-disable")
