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
    amounts = list(pad)
    if len(amounts) % 2 or len(amounts) // 2 > input.dim():
        raise ValueError(
            f"pad: got {len(amounts)} amounts for an input of shape {list(input.shape)}, expected "
            f"an even number of at most {2 * input.dim()}"
        )
    if mode != "constant":
        if value is not None and value != 0:
            raise ValueError(f"pad: got value {value} with mode {mode!r}, expected None")
        return _pad_by_index(input, amounts, mode)
    return _pad_constant(input, amounts, 0.0 if value is None else value)


def _pad_constant(input: Tensor, amounts: list[int], value: float) -> Tensor:
    for k in range(len(amounts) // 2):
        dim = input.dim() - 1 - k
        before, after = amounts[2 * k], amounts[2 * k + 1]
        size = input.shape[dim]
        if size + before + after < 0:
            raise RuntimeError(
                f"pad: got amounts ({before}, {after}) for size {size} in dimension {dim}, "
                "expected a size that is not negative"
            )
        if before < 0 or after < 0:
            start, stop = max(-before, 0), size - max(-after, 0)
            input = input.narrow(dim, start, stop - start)
        if before > 0 or after > 0:
            pieces = [input]
            if before > 0:
                pieces.insert(0, _border(input, dim, before, value))
            if after > 0:
                pieces.append(_border(input, dim, after, value))
            input = aten.cat(pieces, dim)
    return input.clone() if all(amount <= 0 for amount in amounts) else input


def _border(input: Tensor, dim: int, size: int, value: float) -> Tensor:
    shape = [*input.shape[:dim], size, *input.shape[dim + 1 :]]
    return aten.full(shape, value, dtype=input.dtype, device=input.device)


def _pad_by_index(input: Tensor, amounts: list[int], mode: str) -> Tensor:
    for k in range(len(amounts) // 2):
        before, after = amounts[2 * k], amounts[2 * k + 1]
        dim = input.dim() - 1 - k
        size = input.shape[dim]
        places = range(-before, size + after)
        if mode == "replicate":
            index = [min(max(i, 0), size - 1) for i in places]
        elif mode == "circular" and max(before, after) <= size:
            index = [i % size for i in places]
        elif mode == "reflect" and max(before, after) < size:
            index = [size - 1 - abs(size - 1 - abs(i)) for i in places]
        elif mode in ("circular", "reflect"):
            raise RuntimeError(
                f"pad: got amounts ({before}, {after}) for size {size} in dimension {dim}, expected "
                f"at most {size if mode == 'circular' else size - 1} with mode {mode!r}"
            )
        else:
            raise ValueError(
                f"pad: got mode {mode!r}, expected constant, reflect, replicate or circular"
            )
        input = aten.index_select(input, dim, aten.tensor(index, device=input.device))
    return input
