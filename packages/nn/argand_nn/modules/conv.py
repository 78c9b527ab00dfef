"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

import argand_aten as aten
from argand_c10 import Module, Parameter, Tensor
from argand_nn import functional as F
from argand_nn import init
from argand_nn.functional.conv import IntOrInts, as_tuple, resolve_padding

__all__ = ["Conv1d", "Conv2d"]

_PAD_MODES = {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    """What the convolutions share: settings, parameters and explicit padding."""

    spatial: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: IntOrInts,
        stride: IntOrInts = 1,
        padding: str | IntOrInts = 0,
        dilation: IntOrInts = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{name}: got {in_channels} input and {out_channels} output channels with groups "
                f"{groups}, expected multiples of a positive groups"
            )
        if padding_mode not in _PAD_MODES:
            raise ValueError(
                f"{name}: got padding_mode {padding_mode!r}, expected one of {sorted(_PAD_MODES)}"
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = as_tuple(kernel_size, self.spatial, f"{name} kernel_size")
        self.stride = as_tuple(stride, self.spatial, f"{name} stride")
        self.dilation = as_tuple(dilation, self.spatial, f"{name} dilation")
        pairs = resolve_padding(padding, self.kernel_size, self.stride, self.dilation, name)
        self.padding = (
            padding if isinstance(padding, str) else as_tuple(padding, self.spatial, name)
        )
        self.groups = groups
        self.padding_mode = padding_mode
        # Amounts for functional.pad: last dimension first, before and after.
        self._padding_amounts = [amount for pair in reversed(pairs) for amount in pair]
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(aten.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(aten.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill uniformly on [-k, k] with k = 1 / sqrt(inputs of one unit)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan_in != 0:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def _padded(self, input: Tensor) -> tuple[Tensor, str | tuple[int, ...]]:
        """The input after explicit padding, and the padding left to the operator."""
        if self.padding_mode == "zeros":
            return input, self.padding
        return F.pad(input, self._padding_amounts, self.padding_mode), (0,) * self.spatial

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != (0,) * self.spatial:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.spatial:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class Conv1d(_ConvNd):
    """1-d cross-correlation of (N, C, L) or (C, L); arguments as `Conv2d`."""

    spatial = 1

    def forward(self, input: Tensor) -> Tensor:
        input, padding = self._padded(input)
        return F.conv1d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv2d(_ConvNd):
    """2-d cross-correlation of (N, C, H, W) or (C, H, W).

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: height and width of the window.
        stride: steps between windows.
        padding: elements added on each side, or "same" or "valid".
        dilation: steps between the elements of a window.
        groups: channel groups that do not see one another.
        bias: whether to add a learned vector.
        padding_mode: zeros, reflect, replicate or circular.
        device: where the parameters live.
        dtype: of the parameters; the default dtype if None.
    """

    spatial = 2

    def forward(self, input: Tensor) -> Tensor:
        input, padding = self._padded(input)
        return F.conv2d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )
