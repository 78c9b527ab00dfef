"""Versions of Argand and of what it computes with."""

from __future__ import annotations

from argand import __version__

__all__ = ["__version__", "cuda", "hip"]

cuda: str | None = "13.0"  # the toolkit that the device packages' libraries come from
hip: str | None = None
