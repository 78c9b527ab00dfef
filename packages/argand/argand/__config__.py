"""What this Argand is made of, as text."""

from __future__ import annotations

import platform

from argand import __version__
from argand.global_settings import get_num_interop_threads
from argand_c10 import cpu, get_num_threads

__all__ = ["parallel_info", "show"]

_TIERS = ("the baseline of x86-64", "AVX2", "AVX-512")


def show() -> str:
    """Versions and what the kernels of this processor use, a line each."""
    return (
        f"Argand {__version__}\n"
        f"  - CPython {platform.python_version()} on {platform.machine()}\n"
        f"  - CPU kernels: {_TIERS[cpu.tier()]}\n"
        "  - BLAS and LAPACK: OpenBLAS\n"
    )


def parallel_info() -> str:
    """The numbers of threads, a line each."""
    return (
        f"argand.get_num_threads() : {get_num_threads()}\n"
        f"argand.get_num_interop_threads() : {get_num_interop_threads()}\n"
    )
