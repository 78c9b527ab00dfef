"""Argand: tensors, autograd, neural networks. `import argand as torch` runs ordinary programs.

Importing this module loads nothing else: names and submodules are found at first use.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_SUBMODULES = frozenset(
    {
        "_dynamo",
        "amp",
        "ao",
        "autograd",
        "backends",
        "compiler",
        "cuda",
        "distributed",
        "export",
        "fft",
        "func",
        "fx",
        "linalg",
        "nn",
        "optim",
        "quantization",
        "random",
        "serialization",
        "special",
        "testing",
        "utils",
    }
)
_OWN = {
    "compile": "argand.compiler",
    "e": "argand.constants",
    "get_float32_matmul_precision": "argand.precision",
    "inf": "argand.constants",
    "load": "argand.serialization",
    "nan": "argand.constants",
    "newaxis": "argand.constants",
    "per_channel_affine": "argand.quantization",
    "per_channel_symmetric": "argand.quantization",
    "per_tensor_affine": "argand.quantization",
    "per_tensor_symmetric": "argand.quantization",
    "pi": "argand.constants",
    "save": "argand.serialization",
    "set_float32_matmul_precision": "argand.precision",
}
# Layers whose public names are also names of this module; the first that has a name gives it.
_LAYERS = ("argand_c10", "argand_autograd", "argand_aten")


def _public_names(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name in dir(module) if not name.startswith("_")]
    return [name for name in names if not isinstance(getattr(module, name, None), ModuleType)]


def __getattr__(name: str) -> Any:
    if name.startswith("_") and name not in _SUBMODULES:
        raise AttributeError(f"module 'argand' has no attribute {name!r}")
    if name in _SUBMODULES:
        return importlib.import_module(f"argand.{name}")
    if name in _OWN:
        value = getattr(importlib.import_module(_OWN[name]), name)
        globals()[name] = value
        return value
    # All layers are loaded together: a Tensor is complete only with its operators and gradients.
    for layer in [importlib.import_module(layer) for layer in _LAYERS]:
        value = getattr(layer, name, None)
        if value is not None and not isinstance(value, ModuleType):
            globals()[name] = value
            return value
    raise AttributeError(f"module 'argand' has no attribute {name!r}")


def __dir__() -> list[str]:
    names = {*globals(), *_SUBMODULES, *_OWN}
    for layer in _LAYERS:
        names.update(_public_names(importlib.import_module(layer)))
    return sorted(name for name in names if not name.startswith("_"))
