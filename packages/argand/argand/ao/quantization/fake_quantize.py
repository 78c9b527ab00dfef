"""Fake quantization."""

from __future__ import annotations

from argand_quant import FakeQuantize

__all__ = ["FakeQuantize"]
