"""Modules, losses and functions of neural networks."""

from __future__ import annotations

import argand_nn
from argand_nn import *  # noqa: F403

# isort: split
# This package's own submodules take the place of the layer's.
from argand.nn import functional as functional
from argand.nn import init as init
from argand.nn import modules as modules
from argand.nn import parameter as parameter
from argand.nn import utils as utils

__all__ = sorted({*argand_nn.__all__, "functional", "init", "modules", "parameter", "utils"})
