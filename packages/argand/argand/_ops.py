"""PyTorch's private module of the types of operators, which programs ask for with `isinstance`."""

from __future__ import annotations

from argand.operator_attributes import OpOverload, OpOverloadPacket
from argand_aten import ops

__all__ = ["OpOverload", "OpOverloadPacket", "ops"]
