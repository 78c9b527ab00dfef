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
    __constants__ = ["padding", "value"]

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


class _Zeros(_ConstantPad):
    def __init__(self, padding: IntOrInts) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_Zeros, ConstantPad1d):
    """Zeros around the last dimension."""


class ZeroPad2d(_Zeros, ConstantPad2d):
    """Zeros around the last two dimensions."""


class ZeroPad3d(_Zeros, ConstantPad3d):
    """Zeros around the last three dimensions."""


class ReflectionPad1d(_Pad):
    """The last dimension continued by its mirror image at the ends."""

    __constants__ = ["padding"]

    spatial = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """The last two dimensions continued by their mirror image at the ends."""

    __constants__ = ["padding"]

    spatial = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """The last three dimensions continued by their mirror image at the ends."""

    __constants__ = ["padding"]

    spatial = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """The last dimension continued by its elements at the ends."""

    __constants__ = ["padding"]

    spatial = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """The last two dimensions continued by their elements at the ends."""

    __constants__ = ["padding"]

    spatial = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """The last three dimensions continued by their elements at the ends."""

    __constants__ = ["padding"]

    spatial = 3
    mode = "replicate"


class _CircularPad(_Pad):
    __constants__ = ["padding"]

    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self.spatial + 1, self.spatial + 2):
            raise ValueError(
                f"{type(self).__name__}: got input of shape {list(input.shape)}, expected "
                f"{self.spatial + 1} or {self.spatial + 2} dimensions"
            )
        return super().forward(input)


class CircularPad1d(_CircularPad):
    """The last dimension continued as if it were a circle."""

    spatial = 1


class CircularPad2d(_CircularPad):
    """The last two dimensions continued as if they were circles."""

    spatial = 2


class CircularPad3d(_CircularPad):
    """The last three dimensions continued as if they were circles."""

    spatial = 3
