"""Data loading and other utilities."""

from __future__ import annotations

from argand.utils import data

__all__ = ["data"]
