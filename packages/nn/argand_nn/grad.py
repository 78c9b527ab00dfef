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
    n: int, input: Tensor | Sequence[int], weight: Tensor | Sequence[int], grad_output: Tensor,
    stride: IntOrInts, padding: IntOrInts, dilation: IntOrInts, groups: int,
) -> Tensor:  # fmt: skip
    """The gradient for that of `input` and `weight` of which only the size is given."""
    of_input = not isinstance(input, Tensor)
    x, w = (
        t if isinstance(t, Tensor) else grad_output.new_empty([1]).expand(list(t))  # not read
        for t in (input, weight)
    )
    made: Tensor = aten.ops.convolution_backward(
        grad_output, x, w, _listed(stride, n), _listed(padding, n), _listed(dilation, n),
        groups, [of_input, not of_input, False],
    )[0 if of_input else 1]  # fmt: skip
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
    return _gradient(1, input_size, weight, grad_output, stride, padding, dilation, groups)


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
    return _gradient(1, input, weight_size, grad_output, stride, padding, dilation, groups)


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
    return _gradient(2, input_size, weight, grad_output, stride, padding, dilation, groups)


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
    return _gradient(2, input, weight_size, grad_output, stride, padding, dilation, groups)


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
    return _gradient(3, input_size, weight, grad_output, stride, padding, dilation, groups)


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
    return _gradient(3, input, weight_size, grad_output, stride, padding, dilation, groups)
