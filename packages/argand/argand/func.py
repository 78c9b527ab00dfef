"""Functional transforms."""

from __future__ import annotations

from argand_autograd.func import *  # noqa: F403
from argand_autograd.func import __all__ as __all__
