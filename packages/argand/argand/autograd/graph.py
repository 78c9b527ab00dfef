"""Nodes of the tape and hooks on what it saves."""

from __future__ import annotations

from argand_autograd.graph import *  # noqa: F403
from argand_autograd.graph import __all__ as __all__
