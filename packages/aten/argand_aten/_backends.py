"""Kernels of devices that come in a package of their own."""

from __future__ import annotations

import importlib


def load_cuda() -> None:
    """Registers the CUDA kernels; called when a CUDA device is first asked for.

    Raises:
      ImportError: when their package is not installed.
    """
    try:
        importlib.import_module("argand_aten_cuda")
    except ModuleNotFoundError as error:
        if error.name != "argand_aten_cuda":
            raise
        raise ImportError(
            "argand: got device 'cuda', whose kernels are not installed; pip install argand-aten-cuda"
        ) from None
