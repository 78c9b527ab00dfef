"""Where NVIDIA's libraries are, and what programs allow them."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass

from argand_aten_cuda import _C
from argand_c10 import math_settings

__all__ = ["install", "version"]


@dataclass(frozen=True)
class _Library:
    """One library: an environment variable that names its file, its places below the `nvidia` namespace package, its file names."""

    variable: str
    folders: tuple[str, ...]
    names: tuple[str, ...]

    def candidates(self, roots: list[str]) -> list[str]:
        """Paths of files that are there, best first, then names for the loader's own search."""
        named = os.environ.get(self.variable)
        if named:
            return [named]
        paths = [
            os.path.join(root, folder, name)
            for root in roots
            for folder in self.folders
            for name in self.names
        ]
        return [path for path in paths if os.path.exists(path)] + list(self.names)


_LIBRARIES = {
    "cublasLt": _Library(
        "ARGAND_CUBLASLT_LIBRARY",
        ("cu13/lib", "cublas/lib"),
        ("libcublasLt.so.13", "libcublasLt.so.12"),
    ),
    "cublas": _Library(
        "ARGAND_CUBLAS_LIBRARY", ("cu13/lib", "cublas/lib"), ("libcublas.so.13", "libcublas.so.12")
    ),
    "cudnn": _Library("ARGAND_CUDNN_LIBRARY", ("cudnn/lib",), ("libcudnn.so.9",)),
    "cufft": _Library(
        "ARGAND_CUFFT_LIBRARY", ("cu13/lib", "cufft/lib"), ("libcufft.so.12", "libcufft.so.11")
    ),
    "cusolver": _Library(
        "ARGAND_CUSOLVER_LIBRARY",
        ("cu13/lib", "cusolver/lib"),
        ("libcusolver.so.12", "libcusolver.so.11"),
    ),
}


def _roots() -> list[str]:
    spec = importlib.util.find_spec("nvidia")
    return (
        []
        if spec is None or spec.submodule_search_locations is None
        else list(spec.submodule_search_locations)
    )


def install() -> None:
    """Tells the kernels where the libraries are, each of which is opened at its first use, and what they are allowed."""
    roots = _roots()
    for name, library in _LIBRARIES.items():
        _C.set_library(name, library.candidates(roots))
    math_settings.listen(
        lambda s: _C.set_settings(s.matmul_tf32, s.conv_tf32, s.benchmark, s.deterministic)
    )


def version(name: str) -> int:
    """The version number of "cublasLt", "cublas", "cudnn", "cufft" or "cusolver", as the library says it.

    Raises:
        RuntimeError: where it cannot be opened.
        NotImplementedError: where cuBLAS, cuFFT or cuSOLVER cannot, whose operators then run on the CPU.
    """
    return _C.library_version(name)
