"""Gradients: functions, custom operations, checks."""

# ruff: noqa: E402  (the layer's submodules go before this package's are imported)
from __future__ import annotations

import sys

import argand_autograd
from argand_autograd import *  # noqa: F403

# isort: split
from argand.import_paths import make_room, publish, submodules

# This package's own submodules take the place of the layer's.
make_room(__name__, "functional", "graph")
from argand.autograd import forward_ad as forward_ad
from argand.autograd import functional as functional  # type: ignore[no-redef]
from argand.autograd import grad_mode as grad_mode
from argand.autograd import graph as graph  # type: ignore[no-redef]
from argand.autograd.grad_mode import set_multithreading_enabled as set_multithreading_enabled
from argand.autograd.variable import Variable as Variable

__all__ = [
    *(name for name in argand_autograd.__all__ if name != "func"),
    "Variable",
    "grad_mode",
    "set_multithreading_enabled",
]

publish(
    __name__,
    {
        "anomaly_mode": sys.modules["argand_autograd.anomaly"],
        "function": sys.modules["argand_autograd.function"],
        "gradcheck": sys.modules["argand_autograd.gradcheck"],
    },
)

__getattr__ = submodules(__name__, "profiler")
