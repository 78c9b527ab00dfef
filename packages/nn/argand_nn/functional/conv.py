"""Convolutions and padding."""

from __future__ import annotations

from collections.abc import Sequence

import argand_aten as aten
from argand_c10 import Tensor

__all__ = ["conv1d", "conv2d", "pad"]

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


def resolve_padding(
    padding: str | IntOrInts,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    name: str,
) -> tuple[tuple[int, int], ...]:
    """Padding before and after each spatial dimension; "same" and "valid" are spelled out."""
    length = len(kernel_size)
    if not isinstance(padding, str):
        return tuple((p, p) for p in as_tuple(padding, length, f"{name} padding"))
    if padding == "valid":
        return ((0, 0),) * length
    if padding != "same":
        raise ValueError(f"{name}: got padding {padding!r}, expected integers, 'same' or 'valid'")
    if any(s != 1 for s in stride):
        raise ValueError(
            f"{name}: got padding 'same' with stride {tuple(stride)}, expected stride 1; "
            "give the padding as integers"
        )
    totals = [d * (k - 1) for k, d in zip(kernel_size, dilation, strict=True)]
    return tuple((total // 2, total - total // 2) for total in totals)


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
    if isinstance(padding, str):
        stride = as_tuple(stride, 2, "conv2d stride")
        dilation = as_tuple(dilation, 2, "conv2d dilation")
        pairs = resolve_padding(padding, tuple(weight.shape[2:]), stride, dilation, "conv2d")
        if all(before == after for before, after in pairs):
            padding = tuple(before for before, _ in pairs)
        else:
            input = pad(input, [p for pair in reversed(pairs) for p in pair])
            padding = 0
    return aten.conv2d(input, weight, bias, stride, padding, dilation, groups)


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
    if input.dim() not in (2, 3) or weight.dim() != 3:
        raise RuntimeError(
            f"conv1d: got input {list(input.shape)} and weight {list(weight.shape)}, expected "
            "(N, C, L) or (C, L) and (O, C / groups, k)"
        )
    (stride_,) = as_tuple(stride, 1, "conv1d stride")
    (dilation_,) = as_tuple(dilation, 1, "conv1d dilation")
    ((before, after),) = resolve_padding(
        padding, tuple(weight.shape[2:]), (stride_,), (dilation_,), "conv1d"
    )
    if before != after:
        input = pad(input, [before, after])
        before = 0
    return aten.conv1d(input, weight, bias, stride_, before, dilation_, groups)


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Pad the last dimensions: `pad` is (last before, last after, second last before, ...).

    `mode` is constant (with `value`, 0 by default), reflect, replicate or circular; a negative
    amount removes elements (constant mode).
    """
    return aten.pad(input, pad, mode, value)
