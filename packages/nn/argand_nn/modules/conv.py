"""Convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import argand_aten as aten
from argand_c10 import Module, Parameter, Tensor
from argand_nn import functional as F
from argand_nn import init
from argand_nn.functional.conv import IntOrInts, as_tuple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

_PAD_MODES = {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    """What the convolutions and their transposes share: settings, parameters and explicit padding."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    spatial: int
    weight: Parameter
    bias: Parameter | None
    padding: str | tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: IntOrInts,
        stride: IntOrInts,
        padding: str | IntOrInts,
        dilation: IntOrInts,
        output_padding: IntOrInts,
        groups: int,
        bias: bool,
        padding_mode: str,
        transposed: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        name, n = type(self).__name__, self.spatial
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{name}: got {in_channels} input and {out_channels} output channels with groups "
                f"{groups}, expected multiples of a positive groups"
            )
        modes = {"zeros"} if transposed else _PAD_MODES
        if padding_mode not in modes:
            raise ValueError(
                f"{name}: got padding_mode {padding_mode!r}, expected one of {sorted(modes)}"
            )
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = as_tuple(kernel_size, n, f"{name} kernel_size")
        self.stride = as_tuple(stride, n, f"{name} stride")
        self.dilation = as_tuple(dilation, n, f"{name} dilation")
        self.transposed = transposed
        self.output_padding = as_tuple(output_padding, n, f"{name} output_padding")
        self.groups = groups
        self.padding_mode = padding_mode
        pairs = self._resolve_padding(padding)
        self.padding = padding if isinstance(padding, str) else tuple(p for p, _ in pairs)
        # Amounts for functional.pad: last dimension first, before and after.
        self._padding_amounts = [amount for pair in reversed(pairs) for amount in pair]
        channels = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        shape = (channels[0], channels[1] // groups, *self.kernel_size)
        self.weight = Parameter(aten.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(aten.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _resolve_padding(self, padding: str | IntOrInts) -> list[tuple[int, int]]:
        """Padding before and after each spatial dimension; "same" and "valid" are spelled out."""
        name = type(self).__name__
        if not isinstance(padding, str):
            return [(p, p) for p in as_tuple(padding, self.spatial, f"{name} padding")]
        if padding == "valid":
            return [(0, 0)] * self.spatial
        if padding != "same":
            raise ValueError(
                f"{name}: got padding {padding!r}, expected integers, 'same' or 'valid'"
            )
        if any(s != 1 for s in self.stride):
            raise ValueError(
                f"{name}: got padding 'same' with stride {self.stride}, expected stride 1; "
                "give the padding as integers"
            )
        totals = [d * (k - 1) for k, d in zip(self.kernel_size, self.dilation, strict=True)]
        return [(total // 2, total - total // 2) for total in totals]

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
        if self.output_padding != (0,) * self.spatial:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    """A convolution."""

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
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            False,
            device,
            dtype,
        )


class Conv1d(_Conv):
    """1-d cross-correlation of (N, C, L) or (C, L); arguments as `Conv2d`."""

    spatial = 1

    def forward(self, input: Tensor) -> Tensor:
        input, padding = self._padded(input)
        return F.conv1d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv2d(_Conv):
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


class Conv3d(_Conv):
    """3-d cross-correlation of (N, C, D, H, W) or (C, D, H, W); arguments as `Conv2d`."""

    spatial = 3

    def forward(self, input: Tensor) -> Tensor:
        input, padding = self._padded(input)
        return F.conv3d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class _ConvTranspose(_ConvNd):
    """A convolution's transpose."""

    padding: tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: IntOrInts,
        stride: IntOrInts = 1,
        padding: IntOrInts = 0,
        output_padding: IntOrInts = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: IntOrInts = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            True,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """What must be added on one side to reach `output_size`, given with or without channels."""
        n, name = self.spatial, type(self).__name__
        if output_size is None:
            return self.output_padding
        lead = input.dim() - n
        sizes = list(output_size)[lead if len(output_size) == n + lead else 0 :]
        if len(sizes) != n:
            raise ValueError(
                f"{name}: got output_size {tuple(output_size)}, expected {n} or {n + lead} sizes"
            )
        amounts = []
        for i, size in enumerate(sizes):
            window = self.dilation[i] * (self.kernel_size[i] - 1) + 1
            least = (input.shape[lead + i] - 1) * self.stride[i] - 2 * self.padding[i] + window
            if not least <= size < least + self.stride[i]:
                raise ValueError(
                    f"{name}: got output_size {tuple(sizes)} for an input of shape "
                    f"{list(input.shape)}, expected a size from {least} to "
                    f"{least + self.stride[i] - 1} in spatial dimension {i}"
                )
            amounts.append(size - least)
        return tuple(amounts)


class ConvTranspose1d(_ConvTranspose):
    """The transpose of `Conv1d`; arguments as `ConvTranspose2d`."""

    spatial = 1

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.conv_transpose1d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose2d(_ConvTranspose):
    """The transpose of `Conv2d` (its gradient for the input), of (N, C, H, W) or (C, H, W).

    Args:
        in_channels: C of the input.
        out_channels: C of the output.
        kernel_size: height and width of the window.
        stride: steps between the windows of the output.
        padding: elements removed from each side of the output.
        output_padding: elements added to one side of the output.
        groups: channel groups that do not see one another.
        bias: whether to add a learned vector.
        dilation: steps between the elements of a window.
        padding_mode: zeros.
        device: where the parameters live.
        dtype: of the parameters; the default dtype if None.
    """

    spatial = 2

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """`output_size` chooses among the sizes that the stride leaves open."""
        return F.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose3d(_ConvTranspose):
    """The transpose of `Conv3d`; arguments as `ConvTranspose2d`."""

    spatial = 3

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return F.conv_transpose3d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )
