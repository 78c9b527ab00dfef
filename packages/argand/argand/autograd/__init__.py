"""Gradients: functions, custom operations, checks."""

from __future__ import annotations

from argand_autograd import *  # noqa: F403
from argand_autograd import __all__ as __all__
