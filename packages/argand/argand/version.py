"""Versions of Argand and of what it computes with."""

from __future__ import annotations

__all__ = ["__version__", "cuda", "hip"]

__version__ = "0.1.0"
cuda: str | None = "13.0"  # the toolkit that the device packages' libraries come from
hip: str | None = None
