"""CUDA kernels of the operators. Importing registers them; `argand_aten` does so when a CUDA device is first used."""

from __future__ import annotations

import argand_c10

argand_c10.check_abi("argand-aten-cuda", built_for=2)

import argand_aten  # noqa: E402, F401  (the ABI is checked first; its operators must be registered)
from argand_aten_cuda import _C, libraries  # noqa: E402
from argand_aten_cuda.provider import find  # noqa: E402

_C.set_provider(find)
libraries.install()
argand_c10.register_fallback("cuda", argand_c10.run_on_cpu)

__version__ = "0.1.0"
__all__ = ["libraries"]
