"""Forward and backward graphs ahead of time."""

from __future__ import annotations

__version__ = "0.1.0"
