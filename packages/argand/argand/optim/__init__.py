"""Optimizers and learning-rate schedulers."""

# ruff: noqa: E402  (the layer's submodules go before this package's are imported)
from __future__ import annotations

import sys

import argand_nn.optim as _optim
from argand_nn.optim import *  # noqa: F403
from argand_nn.optim import __all__ as __all__

# isort: split
from argand.import_paths import make_room, publish

# This package's own submodules take the place of the layer's.
make_room(__name__, "lr_scheduler", "swa_utils")
from argand.optim import lr_scheduler as lr_scheduler  # type: ignore[no-redef]
from argand.optim import optimizer as optimizer
from argand.optim import swa_utils as swa_utils  # type: ignore[no-redef]

# A module an optimizer (`optim.sgd`), the one that has it.
_modules = {
    name.lower(): sys.modules[value.__module__]
    for name, value in vars(_optim).items()
    if isinstance(value, type)
}
publish(__name__, {**_modules, **{f"_{name}": _modules[name] for name in ("adafactor", "muon")}})
