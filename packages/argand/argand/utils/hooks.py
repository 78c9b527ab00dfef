"""Handles of hooks."""

from __future__ import annotations

from argand_autograd.graph import RemovableHandle

__all__ = ["RemovableHandle"]
