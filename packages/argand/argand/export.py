"""Programs without Python: `export`, `Dim`, `save`, `load`, `package`, `load_package`."""

from __future__ import annotations

import sys
from typing import Any

import argand_export
from argand.import_paths import publish
from argand_export import __all__ as __all__
from argand_export import signature
from argand_export.operator_libraries import register_operator_module

# Saved programs may call operators of packages that nothing has imported yet.
for _namespace in ("quantized", "quantized_decomposed"):
    register_operator_module(_namespace, "argand_quant.operators")

publish(__name__, dict.fromkeys(("dynamic_shapes", "exported_program"), sys.modules[__name__]))
publish(__name__, {"graph_signature": signature})


def __getattr__(name: str) -> Any:
    # What traces and compiles is loaded by the names that need it.
    if name not in __all__:
        raise AttributeError(f"module 'argand.export' has no attribute {name!r}")
    return getattr(argand_export, name)
