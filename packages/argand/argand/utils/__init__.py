"""Data loading and other utilities."""

from __future__ import annotations

from argand.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
