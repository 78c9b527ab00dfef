"""Programs with observers, and programs on integers."""

from __future__ import annotations

from argand_quant import convert_pt2e, prepare_pt2e

__all__ = ["convert_pt2e", "prepare_pt2e"]
