"""Convolutions and padding."""

from __future__ import annotations

from collections.abc import Sequence

import argand_aten as aten
from argand_c10 import Tensor

__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "pad",
]

IntOrInts = int | Sequence[int]


def as_tuple(value: IntOrInts, length: int, name: str) -> tuple[int, ...]:
    """`value` as `length` integers; one integer stands for all."""
    if isinstance(value, int):
        return (value,) * length
    result = tuple(value)
    if len(result) == 1:
        return result * length
    if len(result) != length:
        raise ValueError(f"{name}: got {len(result)} values {result}, expected 1 or {length}")
    return result


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: str | IntOrInts = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """1-d cross-correlation of (N, C, L) or (C, L) with weight (O, C / groups, k)."""
    return aten.conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: str | IntOrInts = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """2-d cross-correlation of (N, C, H, W) or (C, H, W) with weight (O, C / groups, kH, kW)."""
    return aten.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: str | IntOrInts = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """3-d cross-correlation of ([N,] C, D, H, W) with weight (O, C / groups, kD, kH, kW)."""
    return aten.conv3d(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Tensor:
    """The transpose of `conv1d`: ([N,] C, L) with weight (C, O / groups, k)."""
    return aten.conv_transpose1d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Tensor:
    """The transpose of `conv2d`: ([N,] C, H, W) with weight (C, O / groups, kH, kW)."""
    return aten.conv_transpose2d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Tensor:
    """The transpose of `conv3d`: ([N,] C, D, H, W) with weight (C, O / groups, kD, kH, kW)."""
    return aten.conv_transpose3d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """`conv1d` of (L, N, C) with weight (k, C, O), zeros at both ends: (L + 2 * pad - k + 1, N, O)."""
    return aten.conv_tbc(input, weight, bias, pad)


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Pad the last dimensions: `pad` is (last before, last after, second last before, ...).

    `mode` is constant (with `value`, 0 by default), reflect, replicate or circular; a negative
    amount removes elements (constant mode).
    """
    return aten.pad(input, pad, mode, value)
