"""Tensors that have all but elements."""

from __future__ import annotations

from argand_fx.shapes import FakeTensor as FakeTensor
from argand_fx.shapes import FakeTensorMode as FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]


def is_fake(x: object) -> bool:
    """Whether it is a tensor without elements: no program meets one while it is traced, only who reads graphs does."""
    return isinstance(x, FakeTensor)
