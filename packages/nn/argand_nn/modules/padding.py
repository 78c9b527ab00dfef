"""Padding modules. `padding` is one amount for every side, or (left, right, top, bottom, front, back)."""

from __future__ import annotations

from typing import ClassVar

from argand_c10 import Module, Tensor
from argand_nn import functional as F
from argand_nn.functional.conv import IntOrInts

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """The last `spatial` dimensions padded by a mode of `functional.pad`."""

    spatial: ClassVar[int]
    mode: ClassVar[str] = "constant"

    def __init__(self, padding: IntOrInts) -> None:
        super().__init__()
        amounts = (padding,) * (2 * self.spatial) if isinstance(padding, int) else tuple(padding)
        if len(amounts) != 2 * self.spatial:
            raise ValueError(
                f"{type(self).__name__}: got {len(amounts)} amounts {amounts}, expected 1 or "
                f"{2 * self.spatial}"
            )
        self.padding = amounts

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: IntOrInts, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """A constant border around the last dimension."""

    spatial = 1


class ConstantPad2d(_ConstantPad):
    """A constant border around the last two dimensions."""

    spatial = 2


class ConstantPad3d(_ConstantPad):
    """A constant border around the last three dimensions."""

    spatial = 3


class ZeroPad1d(_Pad):
    """Zeros around the last dimension."""

    spatial = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two dimensions."""

    spatial = 2


class ZeroPad3d(_Pad):
    """Zeros around the last three dimensions."""

    spatial = 3


class ReflectionPad1d(_Pad):
    """The last dimension continued by its mirror image at the ends."""

    spatial = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """The last two dimensions continued by their mirror image at the ends."""

    spatial = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """The last three dimensions continued by their mirror image at the ends."""

    spatial = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """The last dimension continued by its elements at the ends."""

    spatial = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """The last two dimensions continued by their elements at the ends."""

    spatial = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """The last three dimensions continued by their elements at the ends."""

    spatial = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """The last dimension continued as if it were a circle."""

    spatial = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """The last two dimensions continued as if they were circles."""

    spatial = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """The last three dimensions continued as if they were circles."""

    spatial = 3
    mode = "circular"
