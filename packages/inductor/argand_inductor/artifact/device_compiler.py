"""What device code is made with beside its own source. A fresh process asks before it loads a program, so this imports neither."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

from argand_c10.source_digest import source_digest

_LIBRARY = "argand_aten_cuda"  # whose functions kernels call


def other_python() -> str:
    """The interpreter whose Triton is used instead of this one's: ARGAND_TRITON_PYTHON; "" for this one."""
    return os.environ.get("ARGAND_TRITON_PYTHON", "")


def version_of(triton: str) -> str:
    """The version of a Triton by the path of its __init__.py."""
    found = re.search(r"^__version__ = ['\"](.+)['\"]", Path(triton).read_text(), re.MULTILINE)
    return found[1] if found else triton


def own_triton() -> str:
    """The version of this interpreter's Triton; "" where it has none."""
    spec = importlib.util.find_spec("triton")
    return version_of(spec.origin) if spec is not None and spec.origin else ""


def device_compiler(arch: str) -> list[str]:
    """Versions of what makes a program's device code, "" for what is not in this interpreter; none for programs of the CPU."""
    if not arch:
        return []
    library = source_digest(_LIBRARY) if importlib.util.find_spec(_LIBRARY) else ""
    return [library, "" if other_python() else own_triton()]


def is_current(arch: str, made_with: list[str]) -> bool:
    """Whether what is here would make the same device code; so it is where nothing here could."""
    pairs = zip(device_compiler(arch), made_with, strict=True)
    return all(here in ("", there) for here, there in pairs)
