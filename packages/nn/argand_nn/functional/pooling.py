"""Pooling. One stride, padding or window size stands for every dimension; the stride is the window's size by default."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import argand_aten as aten
from argand_c10 import Tensor
from argand_nn.functional.conv import IntOrInts, as_tuple

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

OutputSize = int | None | Sequence[int | None]


def _in_format_of(values: Tensor, indices: Tensor, input: Tensor) -> tuple[Tensor, Tensor]:
    """Both with the channels last where `input` has them."""
    return aten.ops._in_format_of(values, input), aten.ops._in_format_of(indices, input)


# ---- maxima and means of windows -------------------------------------------------------------------------------------


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool1d` and the place of each maximum."""
    values, indices = aten.max_pool1d_with_indices(
        input, kernel_size, stride, padding, dilation, ceil_mode
    )
    return values, indices


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool2d` and the flat place (in H x W) of each maximum."""
    values, indices = aten.max_pool2d_with_indices(
        input, kernel_size, stride, padding, dilation, ceil_mode
    )
    return _in_format_of(values, indices, input)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool3d` and the flat place (in D x H x W) of each maximum."""
    values, indices = aten.max_pool3d_with_indices(
        input, kernel_size, stride, padding, dilation, ceil_mode
    )
    return _in_format_of(values, indices, input)


def max_pool1d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of (N, C, L) or (C, L); with `return_indices`, also their places."""
    if not return_indices:
        return aten.ops.max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of (N, C, H, W) or (C, H, W); with `return_indices`, also their places."""
    if not return_indices:
        return aten.ops.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maximum over windows of ([N,] C, D, H, W); with `return_indices`, also their places."""
    if not return_indices:
        return aten.ops.max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


def avg_pool1d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Mean over windows of (N, C, L) or (C, L)."""
    return aten.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Mean over windows of (N, C, H, W) or (C, H, W)."""
    return aten.avg_pool2d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out=out
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Mean over windows of (N, C, D, H, W) or (C, D, H, W)."""
    return aten.avg_pool3d(
        input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out=out
    )


def _root_of_sums(means: Tensor, count: int, norm_type: float) -> Tensor:
    return (aten.sign(means) * aten.relu(aten.abs(means)) * count) ** (1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int,
    stride: IntOrInts | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Sum over windows of x ** norm_type) ** (1 / norm_type), of (N, C, L) or (C, L)."""
    means = avg_pool1d(input**norm_type, kernel_size, stride, 0, ceil_mode)
    return _root_of_sums(means, kernel_size, norm_type)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Sum over windows of x ** norm_type) ** (1 / norm_type), of ([N,] C, H, W)."""
    means = avg_pool2d(input**norm_type, kernel_size, stride, 0, ceil_mode)
    return _root_of_sums(means, math.prod(as_tuple(kernel_size, 2, "lp_pool2d")), norm_type)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """(Sum over windows of x ** norm_type) ** (1 / norm_type), of ([N,] C, D, H, W)."""
    means = avg_pool3d(input**norm_type, kernel_size, stride, 0, ceil_mode)
    return _root_of_sums(means, math.prod(as_tuple(kernel_size, 3, "lp_pool3d")), norm_type)


# ---- windows that divide the input -----------------------------------------------------------------------------------


def _output_size(input: Tensor, output_size: OutputSize, n: int, name: str) -> list[int]:
    """The last `n` sizes of the result; None keeps the input's."""
    if isinstance(output_size, int):
        return [output_size] * n
    sizes = [None] * n if output_size is None else list(output_size)
    if sizes and isinstance(input, Tensor) and input.dim() <= n:  # a traced value has no size yet
        raise ValueError(
            f"{name}: got input of shape {list(input.shape)}, expected at least {n + 1} dimensions"
        )
    if len(sizes) != n:
        raise RuntimeError(f"{name}: got output_size {tuple(sizes)}, expected {n} values")
    return [input.shape[i - n] if size is None else size for i, size in enumerate(sizes)]


def adaptive_avg_pool1d(input: Tensor, output_size: IntOrInts) -> Tensor:
    """Mean over windows chosen so that (..., L) becomes (..., output_size)."""
    return aten.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Mean over windows chosen so that (..., H, W) becomes (..., output_size); None keeps a size."""
    return aten.adaptive_avg_pool2d(
        input, _output_size(input, output_size, 2, "adaptive_avg_pool2d")
    )


def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """Mean over windows chosen so that (..., D, H, W) becomes (..., output_size); None keeps a size."""
    return aten.adaptive_avg_pool3d(
        input, _output_size(input, output_size, 3, "adaptive_avg_pool3d")
    )


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: IntOrInts, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool1d` and the place of each maximum."""
    values, indices = aten.adaptive_max_pool1d(input, output_size)
    return values, indices


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` and the flat place (in H x W) of each maximum."""
    sizes = _output_size(input, output_size, 2, "adaptive_max_pool2d")
    values, indices = aten.adaptive_max_pool2d(input, sizes)
    return _in_format_of(values, indices, input)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool3d` and the flat place (in D x H x W) of each maximum."""
    sizes = _output_size(input, output_size, 3, "adaptive_max_pool3d")
    values, indices = aten.adaptive_max_pool3d(input, sizes)
    return values, indices


def adaptive_max_pool1d(input: Tensor, output_size: IntOrInts, return_indices: bool = False) -> Any:
    """Maximum over windows chosen so that (..., L) becomes (..., output_size)."""
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool2d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> Any:
    """Maximum over windows chosen so that (..., H, W) becomes (..., output_size); None keeps a size."""
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


def adaptive_max_pool3d(
    input: Tensor, output_size: OutputSize, return_indices: bool = False
) -> Any:
    """Maximum over windows chosen so that (..., D, H, W) becomes (..., output_size); None keeps a size."""
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]


# ---- windows that are drawn ------------------------------------------------------------------------------------------


def _fractional(
    n: int,
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: IntOrInts | None,
    output_ratio: float | Sequence[float] | None,
    random_samples: Tensor | None,
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{n}d"
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"{name}: got neither output_size nor output_ratio, expected one")
        ratios = [output_ratio] * n if isinstance(output_ratio, float | int) else list(output_ratio)
        given = input.shape[input.dim() - n :]
        output_size = [int(size * ratio) for size, ratio in zip(given, ratios, strict=True)]
    if random_samples is None:
        batch = 1 if input.dim() == n + 1 else input.shape[0]
        random_samples = aten.rand(
            batch, input.shape[-n - 1], n, dtype=input.dtype, device=input.device
        )
    pool = aten.fractional_max_pool2d if n == 2 else aten.fractional_max_pool3d
    values, indices = pool(input, kernel_size, output_size, random_samples)
    return values, indices


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: IntOrInts | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` and the flat place (in H x W) of each maximum."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: IntOrInts | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool3d` and the flat place (in D x H x W) of each maximum."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: IntOrInts | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maximum over windows at places that are drawn for each plane (Graham 2015).

    The result's plane has `output_size`, or `output_ratio` of the input's. `_random_samples`
    (batch, channels, 2) in [0, 1) replaces the drawing.
    """
    found = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: IntOrInts,
    output_size: IntOrInts | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """`fractional_max_pool2d` of volumes; `_random_samples` is (batch, channels, 3)."""
    found = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


# ---- the way back ----------------------------------------------------------------------------------------------------


def _unpooled_size(
    n: int,
    input: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None,
    padding: IntOrInts,
    output_size: Sequence[int] | None,
) -> tuple[list[int], tuple[int, ...], tuple[int, ...]]:
    """(sizes of the result, stride, padding)."""
    name = f"max_unpool{n}d"
    kernel = as_tuple(kernel_size, n, f"{name} kernel_size")
    steps = kernel if stride is None else as_tuple(stride, n, f"{name} stride")
    border = as_tuple(padding, n, f"{name} padding")
    given = input.shape[input.dim() - n :]
    sizes = [
        (size - 1) * step + window - 2 * pad
        for size, step, window, pad in zip(given, steps, kernel, border, strict=True)
    ]
    if output_size is None:
        return sizes, steps, border
    wanted = list(output_size)[max(len(output_size) - n, 0) :]
    if len(output_size) not in (n, n + 1, n + 2):
        raise ValueError(
            f"{name}: got output_size {tuple(output_size)}, expected {n} or {n + 2} sizes"
        )
    for have, want, step in zip(sizes, wanted, steps, strict=True):
        if not have - step < want < have + step:
            raise ValueError(
                f"{name}: got output_size {tuple(output_size)}, expected sizes nearer than the "
                f"stride {steps} to {tuple(sizes)}"
            )
    return wanted, steps, border


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros with the elements of `input` at the places that `max_pool1d` found."""
    sizes, _, _ = _unpooled_size(1, input, kernel_size, stride, padding, output_size)
    planes = aten.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*sizes, 1])
    return planes.squeeze(-1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros with the elements of `input` at the places that `max_pool2d` found."""
    sizes, _, _ = _unpooled_size(2, input, kernel_size, stride, padding, output_size)
    return aten.max_unpool2d(input, indices, sizes)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: IntOrInts,
    stride: IntOrInts | None = None,
    padding: IntOrInts = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros with the elements of `input` at the places that `max_pool3d` found."""
    sizes, steps, border = _unpooled_size(3, input, kernel_size, stride, padding, output_size)
    return aten.max_unpool3d(input, indices, sizes, steps, border)
