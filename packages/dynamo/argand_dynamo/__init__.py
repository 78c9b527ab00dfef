"""Traces Python bytecode into graphs, with guards and frame plans."""

from __future__ import annotations

__version__ = "0.1.0"
