"""Gradients of convolutions for their inputs and weights, each by itself."""

from __future__ import annotations

from collections.abc import Sequence

import argand_aten as aten
from argand_c10 import Tensor

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]

IntOrInts = int | Sequence[int]


def _listed(value: IntOrInts, n: int) -> list[int]:
    return [value] * n if isinstance(value, int) else list(value)


def _gradient(
    n: int, place: int, input: Tensor, weight: Tensor, grad_output: Tensor,
    stride: IntOrInts, padding: IntOrInts, dilation: IntOrInts, groups: int,
) -> Tensor:  # fmt: skip
    """The gradient for the input (`place` 0) or the weight (1)."""
    wanted = [place == 0, place == 1, False]
    made: Tensor = aten.ops.convolution_backward(
        grad_output, input, weight, _listed(stride, n), _listed(padding, n), _listed(dilation, n),
        groups, wanted,
    )[place]  # fmt: skip
    return made


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` for its input, of size `input_size`, from that of its result."""
    unread = grad_output.new_empty([1]).expand(list(input_size))
    return _gradient(1, 0, unread, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv1d` for its weight, of size `weight_size`, from that of its result."""
    unread = grad_output.new_empty([1]).expand(list(weight_size))
    return _gradient(1, 1, input, unread, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` for its input, of size `input_size`, from that of its result."""
    unread = grad_output.new_empty([1]).expand(list(input_size))
    return _gradient(2, 0, unread, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv2d` for its weight, of size `weight_size`, from that of its result."""
    unread = grad_output.new_empty([1]).expand(list(weight_size))
    return _gradient(2, 1, input, unread, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` for its input, of size `input_size`, from that of its result."""
    unread = grad_output.new_empty([1]).expand(list(input_size))
    return _gradient(3, 0, unread, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of `conv3d` for its weight, of size `weight_size`, from that of its result."""
    unread = grad_output.new_empty([1]).expand(list(weight_size))
    return _gradient(3, 1, input, unread, grad_output, stride, padding, dilation, groups)
