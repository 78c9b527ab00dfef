"""Windows as columns and back; channels and pixels moved into one another."""

from __future__ import annotations

import argand_aten as aten
from argand_c10 import Tensor
from argand_nn.functional.conv import IntOrInts

__all__ = [
    "channel_shuffle",
    "fold",
    "native_channel_shuffle",
    "pixel_shuffle",
    "pixel_unshuffle",
    "unfold",
]


def unfold(
    input: Tensor,
    kernel_size: IntOrInts,
    dilation: IntOrInts = 1,
    padding: IntOrInts = 0,
    stride: IntOrInts = 1,
) -> Tensor:
    """Windows of ([N,] C, H, W) as columns ([N,] C * window, windows)."""
    return aten.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor,
    output_size: IntOrInts,
    kernel_size: IntOrInts,
    dilation: IntOrInts = 1,
    padding: IntOrInts = 0,
    stride: IntOrInts = 1,
) -> Tensor:
    """Columns ([N,] C * window, windows) added into ([N,] C, *output_size) where they lie."""
    return aten.col2im(input, output_size, kernel_size, dilation, padding, stride)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C r^2, H, W) as (*, C, H r, W r) with r = upscale_factor."""
    return aten.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H r, W r) as (*, C r^2, H, W) with r = downscale_factor."""
    return aten.pixel_unshuffle(input, downscale_factor)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, C, *) with the channels of `groups` groups interleaved."""
    return aten.channel_shuffle(input, groups)


native_channel_shuffle = channel_shuffle
