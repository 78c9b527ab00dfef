"""Signal processing."""

from __future__ import annotations

from argand.import_paths import publish
from argand.signal import windows as windows

__all__ = ["windows"]

publish(f"{__name__}.windows", {"windows": windows})
