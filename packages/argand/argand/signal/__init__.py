"""Signal processing."""

from __future__ import annotations

from argand.signal import windows as windows

__all__ = ["windows"]
