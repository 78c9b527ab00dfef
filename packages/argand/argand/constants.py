"""Numbers that programs name through the front-end, the index of a new dimension, and what the CPU's kernels are made of."""

from __future__ import annotations

from math import e, inf, nan, pi

from argand_c10 import contiguous_format

__all__ = [
    "e",
    "has_lapack",
    "has_mkl",
    "has_openmp",
    "has_spectral",
    "inf",
    "legacy_contiguous_format",
    "nan",
    "newaxis",
    "pi",
]

newaxis = None
legacy_contiguous_format = contiguous_format
has_lapack = True  # OpenBLAS's
has_mkl = False
has_openmp = False  # threads are the pool's
has_spectral = True
