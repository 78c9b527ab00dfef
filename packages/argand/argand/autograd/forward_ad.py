"""Tangents of tensors: there are none, since gradients run backwards (`argand.func.jvp` gives forward derivatives)."""

from __future__ import annotations

from typing import NamedTuple

from argand_c10 import Tensor

__all__ = ["UnpackedDualTensor", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, None where it has none."""

    primal: Tensor
    tangent: Tensor | None


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The tensor, without a tangent."""
    return UnpackedDualTensor(tensor, None)
