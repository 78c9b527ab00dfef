"""Shapes."""

from __future__ import annotations

from typing import Any

import argand
from argand import Tensor
from argand.array_api.data_types import result_type

__all__ = [
    "broadcast_shapes", "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile",
    "unstack",
]  # fmt: skip


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes have in common."""
    return tuple(argand.broadcast_shapes(*shapes))


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Arrays one after another along an axis; with None, their elements in one dimension."""
    dtype = result_type(*arrays)
    parts = [x.to(dtype) for x in arrays]
    return argand.cat([x.reshape(-1) for x in parts]) if axis is None else argand.cat(parts, axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """New dimensions of size 1, at places among those of the result."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    n = x.ndim + len(axes)
    for a in axes:
        if not -n <= a < n:
            raise IndexError(f"expand_dims: got axis {a}, expected {-n} to {n - 1}")
    places = sorted(a % n for a in axes)
    if len(set(places)) < len(places):
        raise ValueError(f"expand_dims: got axes {axes}, expected different ones")
    for a in places:
        x = argand.unsqueeze(x, a)
    return x


def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """Elements in reverse order along some axes, by default along all."""
    axes = list(range(x.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return argand.flip(x, axes)


def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Dimensions moved to other places."""
    return argand.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Dimensions in another order."""
    return argand.permute(x, tuple(axes))


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element several times."""
    return argand.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """The elements in another shape; `copy=False` refuses to copy."""
    if copy is False:
        try:
            return x.view(shape)
        except RuntimeError as error:
            raise ValueError(
                f"reshape: got copy=False, but shape {tuple(shape)} of these strides needs a copy"
            ) from error
    return argand.reshape(x.clone() if copy else x, shape)


def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Elements moved along axes, those that leave come in at the other end."""
    if axis is None:
        return argand.roll(x, shift)
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    return argand.roll(x, shifts, axes)


def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Without the given dimensions, which must be of size 1."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: got size {x.shape[a]} of axis {a}, expected 1")
    return argand.squeeze(x, axes)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new dimension."""
    dtype = result_type(*arrays)
    return argand.stack([x.to(dtype) for x in arrays], axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The whole array several times along each dimension."""
    return argand.tile(x, tuple(repetitions))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    return tuple(argand.unbind(x, axis))
