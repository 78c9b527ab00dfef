"""Programs without Python: `export`, `Dim`, `save`, `load`."""

from __future__ import annotations

from argand_export import *  # noqa: F403
from argand_export import __all__ as __all__
