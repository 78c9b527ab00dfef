"""Resizing, and sampling at places of a grid."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import argand_aten as aten
from argand_c10 import Tensor
from argand_nn.functional.conv import IntOrInts
from argand_nn.functional.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)

__all__ = [
    "affine_grid",
    "grid_sample",
    "interpolate",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

FloatOrFloats = float | Sequence[float]

_NEAREST: dict[str, tuple[Callable[..., Tensor], ...]] = {
    "nearest": (aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d),
    "nearest-exact": (
        aten.ops._upsample_nearest_exact1d,
        aten.ops._upsample_nearest_exact2d,
        aten.ops._upsample_nearest_exact3d,
    ),
}
_SMOOTH: dict[str, tuple[int, Callable[..., Tensor]]] = {
    "linear": (1, aten.upsample_linear1d),
    "bilinear": (2, aten.upsample_bilinear2d),
    "bicubic": (2, aten.upsample_bicubic2d),
    "trilinear": (3, aten.upsample_trilinear3d),
}
_ANTIALIASED: dict[str, Callable[..., Tensor]] = {
    "bilinear": aten.ops._upsample_bilinear2d_aa,
    "bicubic": aten.ops._upsample_bicubic2d_aa,
}
_MEANS = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)


def _target(
    input: Tensor,
    size: IntOrInts | None,
    scale_factor: FloatOrFloats | None,
    recompute_scale_factor: bool | None,
) -> tuple[list[int], list[float | None]]:
    """(sizes of the result, scales to compute places with; None: from the sizes)."""
    n = input.dim() - 2
    none: list[float | None] = [None] * n
    if (size is None) == (scale_factor is None):
        raise ValueError(
            f"interpolate: got size {size} and scale_factor {scale_factor}, expected exactly one "
            "of them"
        )
    if size is not None:
        if recompute_scale_factor:
            raise ValueError(
                "interpolate: got recompute_scale_factor with size, expected it with scale_factor"
            )
        sizes = list(size) if isinstance(size, Sequence) else [size] * n
        if len(sizes) != max(n, 0):
            raise ValueError(
                f"interpolate: got size {tuple(sizes)} for an input of shape {list(input.shape)}, "
                f"expected 1 or {n} values: input is (batch, channels, ...)"
            )
        return sizes, none
    assert scale_factor is not None
    factors = list(scale_factor) if isinstance(scale_factor, Sequence) else [scale_factor] * n
    if len(factors) != max(n, 0):
        raise ValueError(
            f"interpolate: got scale_factor {tuple(factors)} for an input of shape "
            f"{list(input.shape)}, expected 1 or {n} values: input is (batch, channels, ...)"
        )
    sizes = [int(have * factor) for have, factor in zip(input.shape[2:], factors, strict=True)]
    return sizes, none if recompute_scale_factor else [float(factor) for factor in factors]


def interpolate(
    input: Tensor,
    size: IntOrInts | None = None,
    scale_factor: FloatOrFloats | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resize (batch, channels, ...) with one to three sizes.

    Args:
        input: of a floating dtype; nearest modes take any, smooth ones uint8 too.
        size: sizes of the result, or
        scale_factor: them as multiples of the input's, rounded down.
        mode: nearest, nearest-exact, linear (3-d input), bilinear, bicubic (4-d), trilinear
            (5-d) or area.
        align_corners: for smooth modes: the corner elements lie on one another, not the edges.
        recompute_scale_factor: compute places from the rounded sizes, not from `scale_factor`.
        antialias: bilinear and bicubic take means over wider windows where they shrink.

    Raises:
        ValueError: arguments that do not fit together.
        NotImplementedError: a mode for another number of dimensions.
    """
    smooth = mode in _SMOOTH
    if not smooth and align_corners is not None:
        raise ValueError(
            f"interpolate: got align_corners with mode {mode!r}, expected it with "
            f"{', '.join(_SMOOTH)}"
        )
    sizes, scales = _target(input, size, scale_factor, recompute_scale_factor)
    n = input.dim() - 2
    if antialias and not (mode in _ANTIALIASED and n == 2):
        raise ValueError(
            f"interpolate: got antialias with mode {mode!r} and an input of {n + 2} dimensions, "
            "expected bilinear or bicubic and 4"
        )
    if antialias:
        return _ANTIALIASED[mode](input, sizes, bool(align_corners), *scales)
    if 1 <= n <= 3:
        if mode in _NEAREST:
            return _NEAREST[mode][n - 1](input, sizes, *scales)
        if mode == "area":
            return _MEANS[n - 1](input, sizes)
        if smooth and _SMOOTH[mode][0] == n:
            return _SMOOTH[mode][1](input, sizes, bool(align_corners), *scales)
    raise NotImplementedError(
        f"interpolate: got mode {mode!r} and an input of {n + 2} dimensions, expected nearest, "
        "nearest-exact or area (3 to 5 dimensions), linear (3), bilinear, bicubic (4) or "
        "trilinear (5)"
    )


def upsample(
    input: Tensor,
    size: IntOrInts | None = None,
    scale_factor: FloatOrFloats | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its old name."""
    warnings.warn("`upsample` is deprecated; use `interpolate`", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: IntOrInts | None = None, scale_factor: FloatOrFloats | None = None
) -> Tensor:
    """`interpolate` of mode nearest under its old name."""
    warnings.warn("`upsample_nearest` is deprecated; use `interpolate`", stacklevel=2)
    return interpolate(input, size, scale_factor)


def upsample_bilinear(
    input: Tensor, size: IntOrInts | None = None, scale_factor: FloatOrFloats | None = None
) -> Tensor:
    """`interpolate` of mode bilinear with aligned corners under its old name."""
    warnings.warn("`upsample_bilinear` is deprecated; use `interpolate`", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_INTERPOLATIONS = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The elements of (N, C, [D,] H, W) at the places of `grid` (N, ..., 2 or 3).

    Args:
        input: images or volumes.
        grid: places from -1 to 1, the last dimension (x) first.
        mode: bilinear, nearest or bicubic (images only).
        padding_mode: what lies outside: zeros, border or reflection.
        align_corners: -1 and 1 are the middles of the corner elements, not their edges.
    """
    if mode not in _INTERPOLATIONS:
        raise ValueError(
            f"grid_sample: got mode {mode!r}, expected one of {', '.join(_INTERPOLATIONS)}"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            f"grid_sample: got padding_mode {padding_mode!r}, expected one of "
            f"{', '.join(_PADDINGS)}"
        )
    if align_corners is None:
        warnings.warn(
            "grid_sample: align_corners is False by default; say align_corners=True or False",
            stacklevel=2,
        )
    return aten.grid_sampler(
        input,
        grid,
        _INTERPOLATIONS.index(mode),
        _PADDINGS.index(padding_mode),
        bool(align_corners),
    )


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Places for `grid_sample` of an output of `size` by affine maps.

    Args:
        theta: (N, 2, 3) for images, (N, 3, 4) for volumes.
        size: (N, C, [D,] H, W) of the output.
        align_corners: as in `grid_sample`.
    """
    if not theta.is_floating_point():
        raise ValueError(f"affine_grid: got theta of {theta.dtype}, expected a floating dtype")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            f"affine_grid: got size {tuple(size)}, expected 4 sizes for images or 5 for volumes"
        )
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (n, n + 1):
        raise ValueError(
            f"affine_grid: got theta of shape {list(theta.shape)} for size {tuple(size)}, expected "
            "(N, 2, 3) for 4 sizes or (N, 3, 4) for 5"
        )
    if min(size) <= 0:
        raise ValueError(f"affine_grid: got size {tuple(size)}, expected positive sizes")
    if align_corners is None:
        warnings.warn(
            "affine_grid: align_corners is False by default; say align_corners=True or False",
            stacklevel=2,
        )
    elif align_corners and min(size[2:]) == 1:
        warnings.warn(
            "affine_grid: got a size of 1 with align_corners=True, whose only place is at 0",
            stacklevel=2,
        )
    return aten.affine_grid_generator(theta, list(size), bool(align_corners))
