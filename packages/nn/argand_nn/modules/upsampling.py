"""Resizing modules."""

from __future__ import annotations

from collections.abc import Sequence

from argand_c10 import Module, Tensor
from argand_nn import functional as F
from argand_nn.functional.conv import IntOrInts
from argand_nn.functional.upsampling import FloatOrFloats

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """(batch, channels, ...) resized; arguments as `functional.interpolate`."""

    __constants__ = [
        "size",
        "scale_factor",
        "mode",
        "align_corners",
        "name",
        "recompute_scale_factor",
    ]

    def __init__(
        self,
        size: IntOrInts | None = None,
        scale_factor: FloatOrFloats | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: FloatOrFloats | None
        if isinstance(scale_factor, Sequence):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode, self.align_corners = mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images resized by the nearest elements."""

    def __init__(
        self, size: IntOrInts | None = None, scale_factor: FloatOrFloats | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images resized by linear interpolation, with aligned corners."""

    def __init__(
        self, size: IntOrInts | None = None, scale_factor: FloatOrFloats | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
