"""Where OpenBLAS is."""

from __future__ import annotations

import importlib.util
import os


def library_path() -> str:
    """The path of the shared library in the scipy-openblas64 package, without importing it.

    Raises:
      ImportError: when the package is not installed.
    """
    spec = importlib.util.find_spec("scipy_openblas64")
    if spec is None or spec.submodule_search_locations is None:
        raise ImportError("argand_aten: OpenBLAS is missing; pip install scipy-openblas64")
    folder = os.path.join(next(iter(spec.submodule_search_locations)), "lib")
    return os.path.join(folder, "libscipy_openblas64_.so")
