"""The order in memory of convolutions' weights, which is that of their results."""

from __future__ import annotations

from typing import Any, TypeVar

from argand_c10 import Module
from argand_nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

ModuleT = TypeVar("ModuleT", bound=Module)


def _convert(module: ModuleT, kinds: Any, memory_format: Any) -> ModuleT:
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: ModuleT, memory_format: Any) -> ModuleT:
    """Lay out the weights of a module's two-dimensional convolutions; returns the module.

    Args:
        module: whose convolutions, also transposed ones, are changed.
        memory_format: as of `contiguous`.
    """
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: ModuleT, memory_format: Any) -> ModuleT:
    """Lay out the weights of a module's three-dimensional convolutions; returns the module.

    Args:
        module: whose convolutions, also transposed ones, are changed.
        memory_format: as of `contiguous`.
    """
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
