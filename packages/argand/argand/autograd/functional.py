"""Jacobians, Hessians and products with them."""

from __future__ import annotations

from argand_autograd.functional import *  # noqa: F403
from argand_autograd.functional import __all__ as __all__
