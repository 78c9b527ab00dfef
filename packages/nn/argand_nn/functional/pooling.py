"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence

import argand_aten as aten
from argand_c10 import Tensor
from argand_nn.functional.conv import IntOrInts, as_tuple

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "max_pool1d",
    "max_pool2d",
]


def max_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Maximum over windows of (N, C, H, W) or (C, H, W); the stride is the window by default.

    With `return_indices`, also the flat place (in H x W) of each maximum.
    """
    kernel = as_tuple(kernel_size, 2, "max_pool2d kernel_size")
    arguments = (
        kernel,
        kernel if stride is None or stride == [] else as_tuple(stride, 2, "max_pool2d stride"),
        as_tuple(padding, 2, "max_pool2d padding"),
        as_tuple(dilation, 2, "max_pool2d dilation"),
        ceil_mode,
    )
    if return_indices:
        values, indices = aten.max_pool2d_with_indices(input, *arguments)
        return values, indices
    return aten.max_pool2d(input, *arguments)


def max_pool1d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Maximum over windows of (N, C, L) or (C, L)."""
    (kernel,) = as_tuple(kernel_size, 1, "max_pool1d kernel_size")
    (step,) = (kernel,) if stride is None else as_tuple(stride, 1, "max_pool1d stride")
    (border,) = as_tuple(padding, 1, "max_pool1d padding")
    (spread,) = as_tuple(dilation, 1, "max_pool1d dilation")
    result = max_pool2d(
        input.unsqueeze(-2),
        (1, kernel),
        (1, step),
        (0, border),
        (1, spread),
        ceil_mode,
        return_indices,
    )
    if isinstance(result, tuple):
        return result[0].squeeze(-2), result[1].squeeze(-2)
    return result.squeeze(-2)


def avg_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Mean over windows of (N, C, H, W) or (C, H, W); the stride is the window by default."""
    kernel = as_tuple(kernel_size, 2, "avg_pool2d kernel_size")
    return aten.avg_pool2d(
        input,
        kernel,
        kernel if stride is None or stride == [] else as_tuple(stride, 2, "avg_pool2d stride"),
        as_tuple(padding, 2, "avg_pool2d padding"),
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


def avg_pool1d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean over windows of (N, C, L) or (C, L)."""
    (kernel,) = as_tuple(kernel_size, 1, "avg_pool1d kernel_size")
    (step,) = (kernel,) if stride is None else as_tuple(stride, 1, "avg_pool1d stride")
    (border,) = as_tuple(padding, 1, "avg_pool1d padding")
    result = avg_pool2d(
        input.unsqueeze(-2), (1, kernel), (1, step), (0, border), ceil_mode, count_include_pad
    )
    return result.squeeze(-2)


def _output_size(
    input: Tensor, output_size: int | None | Sequence[int | None], name: str
) -> tuple[int, int]:
    sizes = (
        (output_size,) * 2 if output_size is None or isinstance(output_size, int) else output_size
    )
    if len(sizes) != 2:
        raise ValueError(f"{name}: got output_size {tuple(sizes)}, expected 1 or 2 values")
    height, width = sizes
    return (
        int(input.shape[-2] if height is None else height),
        int(input.shape[-1] if width is None else width),
    )


def adaptive_avg_pool2d(input: Tensor, output_size: int | None | Sequence[int | None]) -> Tensor:
    """Mean over windows chosen so that (..., H, W) becomes (..., output_size); None keeps a size."""
    return aten.adaptive_avg_pool2d(input, _output_size(input, output_size, "adaptive_avg_pool2d"))


def adaptive_avg_pool1d(input: Tensor, output_size: int) -> Tensor:
    """Mean over windows chosen so that (..., L) becomes (..., output_size)."""
    return aten.adaptive_avg_pool2d(input.unsqueeze(-2), (1, output_size)).squeeze(-2)


def adaptive_max_pool2d(input: Tensor, output_size: int | None | Sequence[int | None]) -> Tensor:
    """Maximum over windows chosen so that (..., H, W) becomes (..., output_size)."""
    rows, columns = _output_size(input, output_size, "adaptive_max_pool2d")
    height, width = int(input.shape[-2]), int(input.shape[-1])
    if height % rows == 0 and width % columns == 0:
        return aten.max_pool2d(input, (height // rows, width // columns))
    lines = []
    for row in range(rows):
        top, bottom = row * height // rows, -(-(row + 1) * height // rows)
        band = aten.amax(input.narrow(-2, top, bottom - top), -2)
        cells = []
        for column in range(columns):
            left, right = column * width // columns, -(-(column + 1) * width // columns)
            cells.append(aten.amax(band.narrow(-1, left, right - left), -1))
        lines.append(aten.stack(cells, -1))
    return aten.stack(lines, -2)
