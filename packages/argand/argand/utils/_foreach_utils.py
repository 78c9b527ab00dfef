"""Tensors by device and dtype, as optimizers step on them. PyTorch's private module, which programs use nevertheless."""

from __future__ import annotations

from collections.abc import Sequence

from argand_c10 import Tensor, device, dtype

__all__: list[str] = []

_Groups = dict[tuple[device, dtype], tuple[list[list[Tensor | None]], list[int]]]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> _Groups:
    """Several lists of one length, cut alike: by device and dtype of the first list's tensors.

    Returns:
        For each pair the parts of the lists, and with `with_indices` the places they had.

    Raises:
        RuntimeError: for lists of different lengths (empty ones may stay), or a first list that lacks a tensor.
    """
    first = tensorlistlist[0]
    groups: _Groups = {}
    for i, tensor in enumerate(first):
        if tensor is None or any(len(given) not in (0, len(first)) for given in tensorlistlist):
            raise RuntimeError(
                "_group_tensors_by_device_and_dtype: expected lists of one length, the first without None; got lengths "
                f"{[len(given) for given in tensorlistlist]}"
            )
        parts, places = groups.setdefault(
            (tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], [])
        )
        for part, given in zip(parts, tensorlistlist, strict=True):
            part.extend(given[i : i + 1])
        if with_indices:
            places.append(i)
    return groups


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Devices whose kernels take lists of tensors."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Devices with fused optimizer steps."""
    return ["cuda", "cpu"]


def _device_has_foreach_support(device: device) -> bool:
    return device.type in ("cpu", *_get_foreach_kernels_supported_devices())


def _has_foreach_support(tensors: Sequence[Tensor], device: device) -> bool:
    return _device_has_foreach_support(device) and all(type(t) is Tensor for t in tensors)
