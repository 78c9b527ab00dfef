"""The modules; their families are importable: `modules.batchnorm`, `modules.module`..."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import argand_nn.modules as _modules
from argand.import_paths import publish
from argand_nn.modules import *  # noqa: F403
from argand_nn.modules import __all__ as __all__
from argand_nn.modules import utils as _utils
from argand_nn.modules.batchnorm import _BatchNorm as _BatchNorm
from argand_nn.modules.batchnorm import _InstanceNorm as _InstanceNorm
from argand_nn.modules.batchnorm import _NormBase as _NormBase

_families = {k: v for k, v in vars(_modules).items() if isinstance(v, ModuleType)}
# Families that are parts of others here: every class is a name of this module.
_parts = dict.fromkeys(
    ("batchnorm", "channelshuffle", "distance", "instancenorm", "sparse"), sys.modules[__name__]
)
publish(__name__, _families | _parts | {"utils": _utils})
# Classes whose families are others here.
for _name in __all__:
    if _name.startswith("LazyConv"):
        setattr(_modules.conv, _name, getattr(_modules, _name))
_modules.activation.MultiheadAttention = _modules.MultiheadAttention  # type: ignore[attr-defined]
_modules.linear.LazyLinear = _modules.LazyLinear  # type: ignore[attr-defined]


def __getattr__(name: str) -> Any:
    # Of a layer that is loaded when it is used.
    if name == "SyncBatchNorm":
        return importlib.import_module("argand.distributed").SyncBatchNorm
    raise AttributeError(f"module 'argand.nn.modules' has no attribute {name!r}")
