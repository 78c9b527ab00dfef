"""PyTorch's private helpers that programs use nevertheless."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import argand_aten as aten
from argand_c10 import Tensor, device

__all__ = [
    "_flatten_dense_tensors",
    "_get_device_index",
    "_take_tensors",
    "_unflatten_dense_tensors",
]


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all, in one vector."""
    return aten.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The parts of a vector, as views with the shapes of these tensors."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view(t.shape) for part, t in zip(parts, tensors, strict=True))


def _take_tensors(tensors: Sequence[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Lists of tensors of one dtype and device, which have no more bytes than the limit together, or are one."""
    groups: dict[Any, list[Tensor]] = {}
    for t in tensors:
        group = groups.setdefault((t.dtype, t.device), [])
        if group and sum(x.nbytes for x in (*group, t)) > size_limit:
            yield list(group)
            group.clear()
        group.append(t)
    yield from groups.values()


def _get_device_index(given: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device, which is a number, a text or a device; that of the CPU is -1.

    Raises:
        ValueError: it has none.
    """
    if isinstance(given, int):
        return given
    if given is not None:
        found = device(given)
        if found.type == "cpu" and allow_cpu:
            return -1
        if found.type != "cpu" and found.index is not None:
            return int(found.index)
    if not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{given}"
        )
    from argand import cuda

    return int(cuda.current_device())
