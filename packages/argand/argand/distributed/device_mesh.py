"""Ranks as an array."""

from __future__ import annotations

from argand_distributed import DeviceMesh as DeviceMesh
from argand_distributed import init_device_mesh as init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
