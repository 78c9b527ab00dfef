"""Tensors copied, divided, joined and added over several devices of one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import argand_aten as aten
from argand_c10 import Tensor, cuda, device

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]

Device: TypeAlias = int | str | device  # a number is one of CUDA's devices, -1 the CPU
_BUFFER = 10 << 20


def _place(where: Device | None) -> device:
    """A device; None is the current one of CUDA."""
    if where is None:
        return device("cuda", cuda.current_device())
    if isinstance(where, int):
        return device("cpu") if where == -1 else device("cuda", where)
    return device(where)


def _one_of(name: str, first: str, given: Any, second: str, other: Any) -> None:
    if (given is None) == (other is None):
        raise RuntimeError(
            f"{name}: Exactly one of '{first}' and '{second}' must be specified, but got {first}={given} and {second}={other}"
        )


def broadcast(
    tensor: Tensor, devices: Sequence[Device] | None = None, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """Copies of a tensor, one a device; where it lies already, it is given itself.

    Args:
        devices: where the copies lie.
        out: in place of devices, where the copies are written.

    Raises:
        RuntimeError: both are given, or neither.
    """
    _one_of("broadcast", "devices", devices, "out", out)
    if out is None:
        return tuple(tensor.to(_place(where), non_blocking=True) for where in devices or ())
    return tuple(target.copy_(tensor, non_blocking=True) for target in out)


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Device], buffer_size: int = _BUFFER
) -> list[tuple[Tensor, ...]]:
    """Copies of several tensors, a tuple of all of them for each device.

    Args:
        buffer_size: accepted; tensors are copied one by one.
    """
    return [tuple(tensor.to(_place(where)) for tensor in tensors) for where in devices]


def scatter(
    tensor: Tensor,
    devices: Sequence[Device] | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Sequence[Any] | None = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """The parts of a tensor along a dimension, one a device.

    Args:
        devices: where the parts lie.
        chunk_sizes: of the parts, which add up to the tensor's; equal ones if None.
        dim: the dimension.
        streams: of each device, where the copies are made; None, or None for one, is the current stream.
        out: in place of devices, where the parts are written; their sizes are those of the parts.

    Raises:
        RuntimeError: devices and out are given, or neither; chunk_sizes is given with out, or is not of the devices' number.
    """
    _one_of("scatter", "devices", devices, "out", out)
    if out is not None:
        if chunk_sizes is not None:
            raise RuntimeError(
                "scatter: 'chunk_sizes' must not be specified when 'out' is specified"
            )
        parts = tensor.split([target.shape[dim] for target in out], dim)
        return tuple(target.copy_(part) for target, part in zip(out, parts, strict=True))
    places = [_place(where) for where in devices or ()]
    if chunk_sizes is None:
        parts = tensor.chunk(len(places), dim)
    elif len(chunk_sizes) != len(places):
        raise RuntimeError(
            f"scatter: got {len(chunk_sizes)} chunk_sizes for {len(places)} devices, expected one for each"
        )
    else:
        parts = tensor.split(list(chunk_sizes), dim)
    queues = [None] * len(parts) if streams is None else list(streams)
    found = []
    for part, where, queue in zip(parts, places, queues, strict=False):
        with cuda.stream(queue):
            found.append(part.to(where, non_blocking=queue is not None))
    return tuple(found)


def gather(
    tensors: Sequence[Tensor],
    dim: int = 0,
    destination: Device | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Tensors of several devices joined along a dimension on one.

    Args:
        dim: the dimension.
        destination: where the result lies; None is CUDA's current device.
        out: in place of a destination, where the result is written.

    Raises:
        RuntimeError: destination and out are given.
    """
    if out is not None and destination is not None:
        raise RuntimeError(
            f"gather: 'destination' must not be specified when 'out' is specified, but got destination={destination}"
        )
    where = _place(destination) if out is None else out.device
    joined = aten.cat([tensor.to(where) for tensor in tensors], dim)
    return joined if out is None else out.copy_(joined)


def reduce_add(inputs: Sequence[Tensor], destination: Device | None = None) -> Tensor:
    """The sum of tensors of several devices, on one.

    Args:
        inputs: of the same shape; the sum is made in their order.
        destination: where the result lies; None is CUDA's current device.

    Raises:
        ValueError: the shapes differ.
    """
    where = _place(destination)
    shape = inputs[0].shape
    for i, tensor in enumerate(inputs):
        if tensor.shape != shape:
            raise ValueError(
                f"input {i} has invalid size: got {list(tensor.shape)}, but expected {list(shape)}"
            )
    total = inputs[0].to(where)
    for tensor in inputs[1:]:
        total = total + tensor.to(where)
    return total


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]],
    destination: Device | None = None,
    buffer_size: int = _BUFFER,
) -> tuple[Tensor, ...]:
    """`reduce_add` of the first tensors, of the second ones and so on.

    Args:
        inputs: for each device a sequence of tensors.
        destination: where the results lie; None is CUDA's current device.
        buffer_size: accepted; tensors are copied one by one.
    """
    return tuple(reduce_add(each, destination) for each in zip(*inputs, strict=True))
