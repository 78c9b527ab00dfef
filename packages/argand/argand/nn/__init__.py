"""Modules, losses and functions of neural networks."""

from __future__ import annotations

import argand_nn
from argand_nn import *  # noqa: F403

from argand.nn import functional, init, modules, parameter, utils

__all__ = sorted({*argand_nn.__all__, "functional", "init", "modules", "parameter", "utils"})
